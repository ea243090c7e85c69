"""`operator.config.gardener.cloud/v1alpha1`: the process (spec 20 §3)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final

from msgspec import Meta, field

from pergola.api import component_config
from pergola.api.component_config import Address, Debugging, LogFormat, LogLevel, Port
from pergola.api.operator_config.controllers import Controllers
from pergola.api.schema.declare import Value

API_VERSION: Final = "operator.config.gardener.cloud/v1alpha1"
KIND: Final = "OperatorConfiguration"

Seconds = Annotated[int, Meta(ge=0)]


class ClientConnection(component_config.ClientConnection):
    """How a cluster is reached."""

    qps: float | None = 100.0
    """Requests per second at most; 100 if 0."""
    burst: Annotated[int, Meta(ge=0)] | None = 130
    """Requests at once at most; 130 if 0."""


class LeaderElection(component_config.LeaderElection):
    """How replicas elect a leader."""

    resource_name: str = "gardener-operator-leader-election"
    """The name of the lock."""
    resource_namespace: str = "garden"
    """The namespace of the lock."""


class WebhookServer(Address):
    """Where webhooks are served."""

    port: Port = 2750
    """The port to listen on; any free port if 0."""


class HealthProbes(Address):
    """Where health and readiness are served."""

    port: Port = 2751
    """The port to listen on; any free port if 0."""


class MetricsServer(Address):
    """Where metrics are served."""

    port: Port = 2752
    """The port to listen on; any free port if 0."""


class Server(Value):
    """What the process serves."""

    webhooks: WebhookServer = field(default_factory=WebhookServer)
    """Where webhooks are served."""
    health_probes: HealthProbes = field(default_factory=HealthProbes)
    """Where health and readiness are served."""
    metrics: MetricsServer = field(default_factory=MetricsServer)
    """Where metrics are served."""


class NodeToleration(Value):
    """For how long pods of the runtime cluster tolerate broken nodes."""

    default_not_ready_toleration_seconds: Seconds | None = None
    """For how long a node may be not ready; no toleration is added if absent."""
    default_unreachable_toleration_seconds: Seconds | None = None
    """For how long a node may be unreachable; no toleration is added if absent."""


class OperatorConfiguration(Value):
    """Configures an operator."""

    api_version: str = API_VERSION
    """The group and version of the configuration's schema."""
    kind: str = KIND
    """The kind of the configuration."""
    runtime_client_connection: ClientConnection = field(default_factory=ClientConnection)
    """The cluster that hosts the garden."""
    virtual_client_connection: ClientConnection = field(default_factory=ClientConnection)
    """The cluster that the garden provides; its address and credentials are those of the Garden."""
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    """How replicas elect a leader."""
    server: Server = field(default_factory=Server)
    """What the process serves."""
    debugging: Debugging = field(default_factory=Debugging)
    """How the running process can be examined."""
    log_level: LogLevel = "info"
    """The lowest level that is logged."""
    log_format: LogFormat = "json"
    """The format of log lines."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of the operator, such as `DefaultSeccompProfile`."""
    controllers: Controllers = field(default_factory=Controllers)
    """What the controllers do."""
    node_toleration: NodeToleration = field(default_factory=NodeToleration)
    """For how long pods of the runtime cluster tolerate broken nodes."""
