"""`resourcemanager.config.gardener.cloud/v1alpha1`: the process (spec 10 §13.2)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from pergola.api.resource_manager_config.controllers import Controllers
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration

API_VERSION: Final = "resourcemanager.config.gardener.cloud/v1alpha1"
KIND: Final = "ResourceManagerConfiguration"

Port = Annotated[int, Meta(ge=0, le=65535)]


class ClientConnection(Value):
    """How a cluster is reached, and how much of it."""

    kubeconfig: str = ""
    """The path of a kubeconfig; empty for the credentials inside the cluster."""
    qps: float | None = None
    """Requests per second at most; absent for no limit of our own."""
    burst: Annotated[int, Meta(ge=0)] | None = None
    """Requests at once at most."""
    content_type: str = ""
    """How bodies are written; only JSON is."""
    accept_content_types: str = ""
    """How answers may be written; only JSON is asked for."""
    namespace: str = ""
    """One namespace; it was added to `namespaces` when the configuration was read."""
    namespaces: list[str] = []
    """The namespaces to look at; all if empty."""
    cache_resync_period: Duration = Duration(hours=24)
    """After which time everything in a cache is looked at again."""


class LeaderElection(Value):
    """How replicas agree on the one that works."""

    leader_elect: bool = True
    """Whether there may be several replicas."""
    lease_duration: Duration = Duration(seconds=15)
    """After which time without news a leader counts as gone."""
    renew_deadline: Duration = Duration(seconds=10)
    """For how long a leader tries to renew before it gives up."""
    retry_period: Duration = Duration(seconds=2)
    """The time between two tries."""
    resource_lock: str = "leases"
    """The kind of the lock."""
    resource_name: str = "gardener-resource-manager"
    """The name of the lock."""
    resource_namespace: str = ""
    """The namespace of the lock."""


class Tls(Value):
    """How the server shows who it is."""

    server_cert_dir: str = ""
    """The directory with `tls.crt` and `tls.key`."""
    client_ca_file: str = field(name="clientCAFile", default="")
    """A PEM file: only clients with a certificate of these authorities may connect; empty for all.
    Not in the original."""


class SelfSigned(Value):
    """A server that makes its own certificates and registers its webhooks; not in the original."""

    enabled: bool = False
    """Whether it does; if not, `tls.serverCertDir` has certificates that somebody else renews."""
    namespace: str = "garden"
    """Where the Secret with the certificates is, and the Service."""
    installation: Literal["runtime", "target"] = "runtime"
    """Whether the webhooks are for the cluster that the process runs in, or for another one."""
    prefix: str = ""
    """What the names of the Service, the Secret and the configurations begin with."""
    url: str = ""
    """Where API servers reach the server, such as `https://10.0.0.1:9449`; empty for a Service."""


class WebhookServer(Value):
    """Where webhooks are served."""

    bind_address: str = ""
    """The address; all if empty."""
    port: Port = 9449
    """The port."""
    tls: Tls = field(default_factory=Tls)
    """How the server shows who it is."""
    self_signed: SelfSigned = field(default_factory=SelfSigned)
    """A server that makes its own certificates and registers its webhooks."""


class HealthProbes(Value):
    """Where health and readiness are served."""

    bind_address: str = ""
    """The address; all if empty."""
    port: Port = 8081
    """The port."""


class MetricsServer(Value):
    """Where metrics are served."""

    bind_address: str = ""
    """The address; all if empty."""
    port: Port = 8080
    """The port."""


class Server(Value):
    """What the process serves."""

    webhooks: WebhookServer = field(default_factory=WebhookServer)
    """Where webhooks are served."""
    health_probes: HealthProbes = field(default_factory=HealthProbes)
    """Where health and readiness are served."""
    metrics: MetricsServer = field(default_factory=MetricsServer)
    """Where metrics are served."""


class Debugging(Value):
    """How the process can be looked into."""

    enable_profiling: bool = False
    """Whether profiles are served beside the metrics."""
    enable_contention_profiling: bool = False
    """Whether they tell about contention, too."""


class ResourceManagerConfiguration(Value):
    """Configures a resource manager."""

    api_version: str = API_VERSION
    """The group and version of the configuration's schema."""
    kind: str = KIND
    """That this is a resource manager's configuration."""
    source_client_connection: ClientConnection = field(default_factory=ClientConnection)
    """The cluster in which ManagedResources and their Secrets are."""
    target_client_connection: ClientConnection | None = None
    """The cluster in which the objects are; the source if absent."""
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    """How replicas agree on the one that works."""
    server: Server = field(default_factory=Server)
    """What the process serves."""
    debugging: Debugging = field(default_factory=Debugging)
    """How the process can be looked into."""
    log_level: Literal["debug", "info", "error"] = "info"
    """From which level on events are logged."""
    log_format: Literal["json", "text"] = "json"
    """How events are logged."""
    controllers: Controllers = field(default_factory=Controllers)
    """What the controllers do."""
    webhooks: Webhooks = field(default_factory=Webhooks)
    """Which webhooks are served."""
