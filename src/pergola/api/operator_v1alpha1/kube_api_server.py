"""`spec.virtualCluster.kubernetes.kubeAPIServer` of a Garden (spec 20 §5.4)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated

from msgspec import field

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
from pergola.api.operator_v1alpha1.authentication import (
    Authentication,
    OidcConfig,
    StructuredAuthentication,
    StructuredAuthorization,
)
from pergola.api.operator_v1alpha1.facets import NOT_EMPTY, Autoscaling
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration


class ServiceAccountConfig(Value):
    """Settings of ServiceAccount tokens."""

    issuer: str | None = None
    """The URL of the issuer in tokens."""
    accepted_issuers: list[str] = []
    """Extra issuers whose tokens are accepted, such as former ones."""
    extend_token_expiration: bool | None = None
    """Whether to extend the lifetime of mounted tokens, for clients that never reload them."""
    max_token_expiration: Duration | None = None
    """The longest lifetime of a token."""


class GroupResource(Value):
    """A resource of an API group."""

    group: Annotated[str, NOT_EMPTY]
    """The API group."""
    resource: Annotated[str, NOT_EMPTY]
    """The resource, in plural."""


class Sni(Value):
    """Extra host names of the API server with a separate certificate."""

    secret_name: Annotated[str, NOT_EMPTY] | None = None
    """The Secret with the certificate; the garden's wildcard certificate if absent."""
    domain_patterns: list[str] = []
    """Host names that use the certificate; a `*` can replace the first label."""


class KubeApiServer(Value):
    """Settings of the virtual cluster's kube-apiserver."""

    admission_plugins: list[AdmissionPlugin] = []
    """Admission plugins to configure or disable."""
    api_audiences: list[str] = []
    """The audiences of tokens; `kubernetes` and `gardener` if empty."""
    audit_config: AuditConfig | None = None
    """The configuration of the audit log."""
    audit_webhook: AuditWebhook | None = None
    """The webhook that receives the audit log."""
    authentication: Authentication | None = None
    """The authentication of users."""
    autoscaling: Autoscaling | None = None
    """The lower limits of vertical autoscaling."""
    default_not_ready_toleration_seconds: int | None = None
    """The toleration of nodes that are not ready, in seconds."""
    default_unreachable_toleration_seconds: int | None = None
    """The toleration of unreachable nodes, in seconds."""
    enable_anonymous_authentication: bool | None = None
    """Whether to serve unauthenticated requests; not allowed as of Kubernetes 1.35."""
    encryption_config: EncryptionConfig = field(default_factory=default_encryption)
    """The encryption of resources in etcd."""
    event_ttl: Duration = field(name="eventTTL", default=Duration(hours=1))
    """The lifetime of Events."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of Kubernetes."""
    logging: Logging = field(default_factory=lambda: Logging(verbosity=2))
    """The verbosity of logs."""
    oidc_config: OidcConfig | None = None
    """An OpenID provider; superseded by `structuredAuthentication`, which excludes it."""
    requests: Requests = field(
        default_factory=lambda: Requests(max_non_mutating_inflight=400, max_mutating_inflight=200)
    )
    """The limits of concurrent requests."""
    resources_to_store_in_etcd_events: list[GroupResource] = field(
        name="resourcesToStoreInETCDEvents", default_factory=list
    )
    """Extra resources to store in the etcd for Events."""
    runtime_config: dict[str, bool] = {}
    """APIs to enable or disable, such as `scheduling.k8s.io/v1alpha1`."""
    service_account_config: ServiceAccountConfig | None = None
    """Settings of ServiceAccount tokens."""
    sni: Sni | None = None
    """Extra host names of the API server with a separate certificate."""
    structured_authentication: StructuredAuthentication | None = None
    """Structured authentication, configured in Kubernetes' own format."""
    structured_authorization: StructuredAuthorization | None = None
    """Structured authorization, configured in Kubernetes' own format."""
    tls_min_version: str | None = None
    """The minimum version of TLS: `VersionTLS12` or `VersionTLS13`."""
    watch_cache_sizes: WatchCacheSizes | None = None
    """The sizes of watch caches."""
