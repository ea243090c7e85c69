"""`spec.virtualCluster.gardener` of a Garden: the Gardener components (spec 20 §5.5)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Literal

from msgspec import Meta, field

from pergola.api.core_v1 import LabelSelector, ResourceQuota, Subject
from pergola.api.operator_v1alpha1.api_server import (
    AdmissionPlugin,
    AuditConfig,
    AuditWebhook,
    EncryptionConfig,
    Logging,
    Requests,
    WatchCacheSizes,
    default_encryption,
)
from pergola.api.operator_v1alpha1.dashboard import Dashboard
from pergola.api.operator_v1alpha1.facets import NOT_EMPTY, DnsDomain, LogLevel
from pergola.api.schema.declare import ATOMIC, Value, default, rule
from pergola.api.schema.duration import Duration
from pergola.api.schema.quantity import Quantity

_Level = Annotated[LogLevel, default("info")]
_Strategy = Literal["SameRegion", "MinimalDistance"]


class GardenerApiServer(Value):
    """Settings of the gardener-apiserver."""

    admission_plugins: list[AdmissionPlugin] = []
    """Admission plugins to configure or disable."""
    audit_config: AuditConfig | None = None
    """The configuration of the audit log."""
    audit_webhook: AuditWebhook | None = None
    """The webhook that receives the audit log."""
    encryption_config: EncryptionConfig = field(default_factory=default_encryption)
    """The encryption of resources in etcd; the provider must be that of the kube-apiserver."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of Gardener."""
    go_away_chance: Annotated[float, Meta(ge=0, le=0.02)] | None = None
    """The probability that a request ends its HTTP/2 connection, to rebalance clients."""
    logging: Logging | None = None
    """The verbosity of logs."""
    requests: Requests | None = None
    """The limits of concurrent requests."""
    shoot_admin_kubeconfig_max_expiration: Duration | None = None
    """The longest lifetime of an administrator's kubeconfig of a Shoot."""
    watch_cache_sizes: WatchCacheSizes | None = None
    """The sizes of watch caches."""


class ResourceLimit(Value):
    """A limit for the size and the number of objects."""

    resources: list[str]
    """The resources, in plural; `*` for all."""
    api_groups: list[str] = []
    """The API groups; `*` for all."""
    api_versions: list[str] = []
    """The versions of the groups; `*` for all."""
    size: Quantity | None = None
    """The largest size of an object."""
    count: int | None = None
    """The largest number of objects."""


class ResourceAdmissionConfiguration(Value):
    """Limits for objects of users."""

    limits: list[ResourceLimit]
    """The limits."""
    operation_mode: str | None = None
    """The reaction above a limit: `block` rejects the object, `log` only reports it."""
    unrestricted_subjects: list[Annotated[Subject, ATOMIC]] = []
    """Subjects without limits."""


class AdmissionController(Value):
    """Settings of the gardener-admission-controller."""

    log_level: _Level = "info"
    """The lowest level to log."""
    resource_admission_configuration: ResourceAdmissionConfiguration | None = None
    """Limits for objects of users."""


class ProjectQuota(Value):
    """A quota for new projects."""

    config: ResourceQuota
    """The ResourceQuota to create in a project's namespace."""
    project_selector: Annotated[LabelSelector, ATOMIC] | None = None
    """The projects that get it, by their labels."""


class GardenerControllerManager(Value):
    """Settings of the gardener-controller-manager."""

    default_project_quotas: list[ProjectQuota] = []
    """Quotas for projects; the first match applies."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of Gardener."""
    log_level: _Level = "info"
    """The lowest level to log."""


class Scheduler(Value):
    """Settings of the gardener-scheduler."""

    feature_gates: dict[str, bool] = {}
    """Feature gates of Gardener."""
    log_level: _Level = "info"
    """The lowest level to log."""
    strategy: Annotated[_Strategy, default("SameRegion")] = "SameRegion"
    """The strategy for choosing a Shoot's Seed."""


class DiscoveryServer(Value):
    """Settings of the server that publishes the keys of Shoots' tokens; deployed if present."""

    domain: DnsDomain | None = None
    """The host of the server; `discovery.` plus the first ingress domain if absent."""
    tls_secret_name: str | None = None
    """The Secret with the certificate of the server."""


class VirtualResourceManager(Value):
    """Settings of the resource manager of the virtual cluster."""

    additional_target_namespaces: list[str] = []
    """Extra namespaces of the virtual cluster that it manages."""


class Gardener(Value):
    """The Gardener components of the virtual cluster."""

    cluster_identity: Annotated[str, NOT_EMPTY, rule("self == oldSelf", "Value is immutable")]
    """The identity of this garden among others; immutable."""
    api_server: GardenerApiServer = field(
        name="gardenerAPIServer", default_factory=GardenerApiServer
    )
    """Settings of the gardener-apiserver."""
    admission_controller: AdmissionController = field(
        name="gardenerAdmissionController", default_factory=AdmissionController
    )
    """Settings of the gardener-admission-controller."""
    controller_manager: GardenerControllerManager = field(
        name="gardenerControllerManager", default_factory=GardenerControllerManager
    )
    """Settings of the gardener-controller-manager."""
    scheduler: Scheduler = field(name="gardenerScheduler", default_factory=Scheduler)
    """Settings of the gardener-scheduler."""
    dashboard: Dashboard | None = field(name="gardenerDashboard", default=None)
    """Settings of the dashboard; deployed if present."""
    discovery_server: DiscoveryServer | None = field(name="gardenerDiscoveryServer", default=None)
    """Settings of the discovery server; deployed if present. It cannot be removed."""
    resource_manager: VirtualResourceManager = field(
        name="gardenerResourceManager", default_factory=VirtualResourceManager
    )
    """Settings of the resource manager of the virtual cluster."""
