"""`spec.runtimeCluster` of a Garden: the cluster that hosts it (spec 20 §5.2)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Literal

from msgspec import field

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1.facets import NOT_EMPTY, DnsDomain
from pergola.api.schema.declare import Value, default
from pergola.api.schema.quantity import Quantity, ResourceList


class IngressController(Value):
    """The ingress controller of the runtime cluster."""

    kind: Literal["nginx"]
    """The type of the ingress controller."""
    provider_config: JsonObject | None = None
    """The configuration of the controller, as keys and values of its ConfigMap."""


class Ingress(Value):
    """The external access to components of the runtime cluster."""

    controller: IngressController
    """The ingress controller."""
    domains: Annotated[list[DnsDomain], NOT_EMPTY] = []
    """The domains of components' host names. The first one is immutable."""


class RuntimeNetworking(Value):
    """The networks of the runtime cluster; ranges can only be appended."""

    pods: Annotated[list[str], NOT_EMPTY]
    """Address ranges of pods."""
    services: Annotated[list[str], NOT_EMPTY]
    """Address ranges of Services."""
    nodes: list[str] = []
    """Address ranges of nodes."""
    ip_families: list[str] = field(name="ipFamilies", default_factory=lambda: ["IPv4"])
    """The IP families: `IPv4`, `IPv6`, or both with the primary one first. IPv4 if absent."""
    block_cidrs: list[str] = field(name="blockCIDRs", default_factory=list)
    """Address ranges that pods must not reach."""


class Provider(Value):
    """The location of the runtime cluster."""

    region: str | None = None
    """The region, which is the default for backups."""
    zones: list[str] = []
    """The zones over which components are spread."""


class ProxyProtocol(Value):
    """The PROXY protocol between load balancers and the ingress gateway."""

    allowed: bool
    """Whether the PROXY protocol is accepted."""


class LoadBalancerServices(Value):
    """Settings for every Service of type LoadBalancer that the operator creates."""

    annotations: dict[str, str] = {}
    """Annotations for these Services."""
    external_traffic_policy: str | None = None
    """The `externalTrafficPolicy` of these Services: `Cluster` or `Local`."""
    proxy_protocol: ProxyProtocol | None = None
    """The PROXY protocol between load balancers and the ingress gateway."""


class VerticalPodAutoscaler(Value):
    """The vertical pod autoscaler of the runtime cluster."""

    enabled: Annotated[bool, default(value=True)] = True
    """Whether to deploy it; if not, the cluster must have its own."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of the autoscaler."""
    max_allowed: ResourceList = {}
    """The highest CPU and memory that the autoscaler recommends for a container."""


class TopologyAwareRouting(Value):
    """Topology-aware routing, which keeps traffic in its zone."""

    enabled: bool
    """Whether to keep traffic in its zone."""


class PersistentVolumeClaimAutoscaler(Value):
    """The autoscaler that enlarges volumes before they are full."""

    enabled: bool
    """Whether to deploy it."""


class Settings(Value):
    """Settings of the runtime cluster."""

    load_balancer_services: LoadBalancerServices = field(default_factory=LoadBalancerServices)
    """Settings for every Service of type LoadBalancer that the operator creates."""
    vertical_pod_autoscaler: VerticalPodAutoscaler = field(default_factory=VerticalPodAutoscaler)
    """The vertical pod autoscaler."""
    topology_aware_routing: TopologyAwareRouting | None = None
    """Topology-aware routing; requires several zones and high availability."""
    persistent_volume_claim_autoscaler: PersistentVolumeClaimAutoscaler | None = None
    """The autoscaler that enlarges volumes before they are full."""


class Volume(Value):
    """Settings for the volumes of the runtime cluster."""

    minimum_size: Quantity | None = None
    """The minimum size of every volume."""


class RuntimeCluster(Value):
    """The cluster that hosts the garden."""

    ingress: Ingress
    """The external access to components."""
    networking: RuntimeNetworking
    """The networks of the cluster."""
    provider: Provider
    """The location of the cluster."""
    settings: Settings = field(default_factory=Settings)
    """Settings of the cluster."""
    volume: Volume = field(default_factory=Volume)
    """Settings for volumes."""
