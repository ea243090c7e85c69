"""`resourcemanager.config.gardener.cloud/v1alpha1`: the process (spec 10 §13.2)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from pergola.api import component_config
from pergola.api.component_config import (
    ZERO_IS_UNSET,
    Address,
    Debugging,
    LogFormat,
    LogLevel,
    Port,
    Sharding,
)
from pergola.api.resource_manager_config.controllers import Controllers
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration

API_VERSION: Final = "resourcemanager.config.gardener.cloud/v1alpha1"
KIND: Final = "ResourceManagerConfiguration"


class ClientConnection(component_config.ClientConnection):
    """A connection to a cluster, and the namespaces to watch."""

    namespace: str = ""
    """One namespace, in addition to `namespaces`."""
    namespaces: list[str] = []
    """The namespaces to watch; all if empty."""
    cache_resync_period: Duration = Duration(hours=24)
    """The time between two reconciliations of all objects in a cache."""


class LeaderElection(component_config.LeaderElection):
    """Leader election between replicas."""

    resource_name: Annotated[str, ZERO_IS_UNSET] = "gardener-resource-manager"
    """The name of the lock."""


class Tls(Value):
    """The certificate of the server."""

    server_cert_dir: str = ""
    """The directory with `tls.crt` and `tls.key`."""
    client_ca_file: str = field(name="clientCAFile", default="")
    """A PEM file: only clients with a certificate of these authorities may connect; empty for all.
    Not in the original."""


class SelfSigned(Value):
    """A server that issues its own certificates and registers its webhooks; not in the original."""

    enabled: bool = False
    """Whether to issue certificates, instead of reading them from `tls.serverCertDir`."""
    namespace: str = "garden"
    """The namespace of the Secret with the certificates, and of the Service."""
    installation: Literal["runtime", "target"] = "runtime"
    """The cluster that calls the webhooks: that of the process (`runtime`) or the other one."""
    prefix: str = ""
    """The prefix of the names of the Service, the Secret and the webhook configurations."""
    url: str = ""
    """The server's URL for API servers, such as `https://10.0.0.1:9449`; empty for a Service."""
    owner_cluster_role: str = ""
    """The ClusterRole in the calling cluster whose deletion deletes the webhook configurations,
    such as that of a Helm release; empty for none."""
    garden: bool = False
    """Whether the cluster is the runtime cluster of a garden, whose pods also use the garden's API
    server."""


class WebhookServer(Address):
    """The address of the webhook server."""

    port: Port = 9449
    """The port to listen on."""
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    """The number of processes for the webhooks; each can use one core. Not in the original."""
    tls: Tls = field(default_factory=Tls)
    """The certificate of the server."""
    self_signed: SelfSigned = field(default_factory=SelfSigned)
    """A server that issues its own certificates and registers its webhooks."""


class HealthProbes(Address):
    """The address of the health endpoints."""

    port: Port = 8081
    """The port to listen on."""


class MetricsServer(Address):
    """The address of the metrics endpoint."""

    port: Port = 8080
    """The port to listen on."""


class Server(Value):
    """The endpoints of the process."""

    webhooks: WebhookServer = field(default_factory=WebhookServer)
    """The address of the webhook server."""
    health_probes: HealthProbes = field(default_factory=HealthProbes)
    """The address of the health endpoints."""
    metrics: MetricsServer = field(default_factory=MetricsServer)
    """The address of the metrics endpoint."""


class ResourceManagerConfiguration(Value):
    """The configuration of a resource manager."""

    api_version: str = API_VERSION
    """The group and version of the configuration's schema."""
    kind: str = KIND
    """The kind of the configuration."""
    source_client_connection: ClientConnection = field(default_factory=ClientConnection)
    """The cluster with the ManagedResources and their Secrets."""
    target_client_connection: ClientConnection | None = None
    """The cluster with the managed objects; the source if absent."""
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    """Leader election between replicas."""
    sharding: Sharding = field(default_factory=Sharding)
    """Replicas that share the ManagedResources of a ring; not in the original."""
    server: Server = field(default_factory=Server)
    """The endpoints of the process."""
    debugging: Debugging = field(default_factory=Debugging)
    """Debugging options."""
    log_level: Annotated[LogLevel, ZERO_IS_UNSET] = "info"
    """The lowest level to log."""
    log_format: Annotated[LogFormat, ZERO_IS_UNSET] = "json"
    """The format of log lines."""
    controllers: Controllers = field(default_factory=Controllers)
    """The settings of the controllers."""
    webhooks: Webhooks = field(default_factory=Webhooks)
    """The webhooks to serve."""
