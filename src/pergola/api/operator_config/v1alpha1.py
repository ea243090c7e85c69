"""`operator.config.gardener.cloud/v1alpha1`: the process (spec 20 §3)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final

from msgspec import Meta, field

from pergola.api import component_config
from pergola.api.component_config import (
    ZERO_IS_UNSET,
    Address,
    Debugging,
    LogFormat,
    LogLevel,
    Port,
)
from pergola.api.operator_config.controllers import Controllers
from pergola.api.schema.declare import Value

API_VERSION: Final = "operator.config.gardener.cloud/v1alpha1"
KIND: Final = "OperatorConfiguration"

Seconds = Annotated[int, Meta(ge=0)]


class ClientConnection(component_config.ClientConnection):
    """A connection to a cluster."""

    qps: Annotated[float | None, ZERO_IS_UNSET] = 100.0
    """The maximum number of requests per second; 100 if 0."""
    burst: Annotated[Annotated[int, Meta(ge=0, le=2**31 - 1)] | None, ZERO_IS_UNSET] = 130
    """The maximum number of requests at once; 130 if 0."""


class LeaderElection(component_config.LeaderElection):
    """Leader election between replicas."""

    resource_name: Annotated[str, ZERO_IS_UNSET] = "gardener-operator-leader-election"
    """The name of the lock."""
    resource_namespace: Annotated[str, ZERO_IS_UNSET] = "garden"
    """The namespace of the lock."""


class Tls(Value):
    """The clients of the webhook server; not in the original."""

    client_ca_file: str = field(name="clientCAFile", default="")
    """A PEM file: only clients with a certificate of these authorities may connect; empty for
    all."""


class WebhookServer(Address):
    """The address of the webhook server."""

    port: Port = 2750
    """The port to listen on; any free port if 0."""
    tls: Tls = field(default_factory=Tls)
    """The clients of the webhook server."""
    owner_cluster_role: str = ""
    """The ClusterRole whose deletion deletes the webhook configurations, such as that of a Helm
    release; empty for none. Not in the original."""


class HealthProbes(Address):
    """The address of the health endpoints."""

    port: Port = 2751
    """The port to listen on; any free port if 0."""


class MetricsServer(Address):
    """The address of the metrics endpoint."""

    port: Port = 2752
    """The port to listen on; any free port if 0."""


class Server(Value):
    """The endpoints of the process."""

    webhooks: WebhookServer = field(default_factory=WebhookServer)
    """The address of the webhook server."""
    health_probes: HealthProbes = field(default_factory=HealthProbes)
    """The address of the health endpoints."""
    metrics: MetricsServer = field(default_factory=MetricsServer)
    """The address of the metrics endpoint."""


class NodeToleration(Value):
    """Default tolerations of pods for broken nodes."""

    default_not_ready_toleration_seconds: Seconds | None = None
    """The toleration of nodes that are not ready, in seconds; none is added if absent."""
    default_unreachable_toleration_seconds: Seconds | None = None
    """The toleration of unreachable nodes, in seconds; none is added if absent."""


class OperatorConfiguration(Value):
    """The configuration of an operator."""

    api_version: str = API_VERSION
    """The group and version of the configuration's schema."""
    kind: str = KIND
    """The kind of the configuration."""
    runtime_client_connection: ClientConnection = field(default_factory=ClientConnection)
    """The cluster that hosts the garden."""
    virtual_client_connection: ClientConnection = field(default_factory=ClientConnection)
    """The cluster that the garden provides; the Garden determines its address and credentials."""
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    """Leader election between replicas."""
    server: Server = field(default_factory=Server)
    """The endpoints of the process."""
    debugging: Debugging = field(default_factory=Debugging)
    """Debugging options."""
    log_level: Annotated[LogLevel, ZERO_IS_UNSET] = "info"
    """The lowest level to log."""
    log_format: Annotated[LogFormat, ZERO_IS_UNSET] = "json"
    """The format of log lines."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of the operator, such as `DefaultSeccompProfile`."""
    controllers: Controllers = field(default_factory=Controllers)
    """The settings of the controllers."""
    node_toleration: NodeToleration = field(default_factory=NodeToleration)
    """Default tolerations of pods for broken nodes."""
