"""`webhooks` of the resource manager's configuration (spec 10 §13.2, spec 12 §1.5)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Literal

from msgspec import Meta, field

from pergola.api.core_v1 import Toleration
from pergola.api.resource_manager_config.controllers import Switch
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration

Seconds = Annotated[int, Meta(ge=0)]


class HighAvailabilityConfig(Switch):
    """Spreads replicas over nodes and zones."""

    default_not_ready_toleration_seconds: Seconds | None = None
    """For how long pods tolerate a node that is not ready; no toleration is added if absent."""
    default_unreachable_toleration_seconds: Seconds | None = None
    """For how long pods tolerate a node that is unreachable; no toleration is added if absent."""

    profile: Literal["auto", "seed", "today"] = "auto"
    """Which spreading rules apply; `auto` chooses by the version of the cluster. Not in the
    original."""


class CrdDeletionProtection(Switch):
    """Refuses to delete protected CRDs and their objects."""

    confirmation_maximum_age: Duration | None = None
    """How long ago a deletion may have been confirmed; any time if absent. Not in the original."""


class ExtensionValidation(Switch):
    """Validates extension objects."""

    profile: Literal["relaxed", "strict"] = "relaxed"
    """`strict` keeps rules that the original has dropped. Not in the original."""


class KubernetesServiceHost(Switch):
    """Tells pods the address of the API server."""

    host: str = ""
    """The address."""


class SystemComponentsConfig(Switch):
    """Keeps system components on the nodes that are meant for them."""

    node_selector: dict[str, str] = {}
    """The labels of these nodes; all nodes if empty."""
    pod_node_selector: dict[str, str] = {}
    """What is added to the node selector of pods."""
    pod_tolerations: list[Toleration] = []
    """What is added to the tolerations of pods."""


class PodSchedulerName(Switch):
    """Assigns pods to a scheduler."""

    scheduler_name: str | None = None
    """The scheduler; `default-scheduler` unless given."""


class ProjectedTokenMount(Switch):
    """Mounts a token into pods that do not mount one automatically."""

    expiration_seconds: int | None = None
    """For how long the token is valid; 43200 unless given."""


class NodeAgentAuthorizer(Switch):
    """Lets a node's agent touch what belongs to its node."""

    machine_namespace: str | None = None
    """Where the Machines of the nodes are; absent where there are none."""
    authorize_with_selectors: bool = False
    """Whether requests are judged by their selectors, too."""


class Webhooks(Value):
    """Which webhooks are served."""

    crd_deletion_protection: CrdDeletionProtection = field(default_factory=CrdDeletionProtection)
    """Refuses to delete protected CRDs and their objects."""
    endpoint_slice_hints: Switch = field(default_factory=Switch)
    """Adds topology hints to EndpointSlices."""
    extension_validation: ExtensionValidation = field(default_factory=ExtensionValidation)
    """Validates extension objects."""
    high_availability_config: HighAvailabilityConfig = field(default_factory=HighAvailabilityConfig)
    """Spreads replicas over nodes and zones."""
    kubernetes_service_host: KubernetesServiceHost = field(default_factory=KubernetesServiceHost)
    """Tells pods the address of the API server."""
    node_agent_authorizer: NodeAgentAuthorizer = field(default_factory=NodeAgentAuthorizer)
    """Lets a node's agent touch what belongs to its node."""
    pod_kube_api_server_load_balancing: Switch = field(
        name="podKubeAPIServerLoadBalancing", default_factory=Switch
    )
    """Lets pods reach the API server through a load balancer inside the cluster."""
    pod_scheduler_name: PodSchedulerName = field(default_factory=PodSchedulerName)
    """Assigns pods to a scheduler."""
    pod_topology_spread_constraints: Switch = field(default_factory=Switch)
    """Lets topology spread constraints tell replica sets apart."""
    projected_token_mount: ProjectedTokenMount = field(default_factory=ProjectedTokenMount)
    """Mounts a token into pods that do not mount one automatically."""
    seccomp_profile: Switch = field(default_factory=Switch)
    """Gives pods the container runtime's own seccomp profile."""
    system_components_config: SystemComponentsConfig = field(default_factory=SystemComponentsConfig)
    """Keeps system components on the nodes that are meant for them."""
    token_invalidator: Switch = field(default_factory=Switch)
    """Replaces the tokens of Secrets that are marked for it."""
    vpa_in_place_updates: Switch = field(default_factory=Switch)
    """Lets vertical pod autoscalers resize pods in place."""
