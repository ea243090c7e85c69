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
    """How tokens of ServiceAccounts are issued."""

    issuer: str | None = None
    """The issuer that tokens name, a URL."""
    accepted_issuers: list[str] = []
    """Other issuers whose tokens are accepted, such as earlier ones."""
    extend_token_expiration: bool | None = None
    """Whether mounted tokens live longer than requested, for clients that never read them again."""
    max_token_expiration: Duration | None = None
    """The longest lifetime of a token."""


class GroupResource(Value):
    """Names a resource, whatever version describes it."""

    group: Annotated[str, NOT_EMPTY]
    """The API group."""
    resource: Annotated[str, NOT_EMPTY]
    """The resource, in plural."""


class Sni(Value):
    """Additional names of the API server, with a certificate of their own."""

    secret_name: Annotated[str, NOT_EMPTY] | None = None
    """The Secret with the certificate; the garden's wildcard certificate if absent."""
    domain_patterns: list[str] = []
    """Names for which the certificate is used; a `*` can replace the first label."""


class KubeApiServer(Value):
    """Settings of the virtual cluster's kube-apiserver."""

    admission_plugins: list[AdmissionPlugin] = []
    """Admission plugins to configure or to switch off."""
    api_audiences: list[str] = []
    """The audiences of tokens; `kubernetes` and `gardener` if empty."""
    audit_config: AuditConfig | None = None
    """What the audit log records."""
    audit_webhook: AuditWebhook | None = None
    """Where the audit log is sent."""
    authentication: Authentication | None = None
    """Who recognizes users."""
    autoscaling: Autoscaling | None = None
    """How far it may be scaled down."""
    default_not_ready_toleration_seconds: int | None = None
    """For how long pods tolerate a node that is not ready."""
    default_unreachable_toleration_seconds: int | None = None
    """For how long pods tolerate a node that is unreachable."""
    enable_anonymous_authentication: bool | None = None
    """Whether unauthenticated requests are served; not allowed as of Kubernetes 1.35."""
    encryption_config: EncryptionConfig = field(default_factory=EncryptionConfig)
    """What is encrypted in etcd, and how."""
    event_ttl: Duration = field(name="eventTTL", default=Duration(hours=1))
    """How long Events are kept."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of Kubernetes."""
    logging: Logging = field(default_factory=lambda: Logging(verbosity=2))
    """How much is logged."""
    oidc_config: OidcConfig | None = None
    """An OpenID provider; superseded by `structuredAuthentication`, and not allowed beside it."""
    requests: Requests = field(
        default_factory=lambda: Requests(max_non_mutating_inflight=400, max_mutating_inflight=200)
    )
    """How many requests are served at once."""
    resources_to_store_in_etcd_events: list[GroupResource] = field(
        name="resourcesToStoreInETCDEvents", default_factory=list
    )
    """Resources that are kept in the etcd for Events."""
    runtime_config: dict[str, bool] = {}
    """APIs to switch on or off, such as `scheduling.k8s.io/v1alpha1`."""
    service_account_config: ServiceAccountConfig | None = None
    """How tokens of ServiceAccounts are issued."""
    sni: Sni | None = None
    """Additional names of the API server, with a certificate of their own."""
    structured_authentication: StructuredAuthentication | None = None
    """How users are recognized, in Kubernetes' own format."""
    structured_authorization: StructuredAuthorization | None = None
    """Who decides about requests, in Kubernetes' own format."""
    tls_min_version: str | None = None
    """The lowest version of TLS: `VersionTLS12` or `VersionTLS13`."""
    watch_cache_sizes: WatchCacheSizes | None = None
    """The sizes of watch caches."""
