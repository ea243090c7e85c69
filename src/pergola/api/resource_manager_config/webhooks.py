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
    """The webhook that spreads replicas over nodes and zones."""

    default_not_ready_toleration_seconds: Seconds | None = None
    """Seconds for which pods tolerate a node that is not ready; no toleration if absent."""
    default_unreachable_toleration_seconds: Seconds | None = None
    """Seconds for which pods tolerate an unreachable node; no toleration if absent."""

    profile: Literal["auto", "seed", "today"] = "auto"
    """The spreading rules; `auto` selects them by the cluster's version. Not in the original."""


class CrdDeletionProtection(Switch):
    """The webhook that refuses to delete protected CRDs and their objects."""

    confirmation_maximum_age: Duration | None = None
    """The maximum age of a confirmation; unlimited if absent. Not in the original."""


class ExtensionValidation(Switch):
    """The webhook that validates extension objects."""

    profile: Literal["relaxed", "strict"] = "relaxed"
    """`strict` also applies rules that the original has dropped. Not in the original."""


class KubernetesServiceHost(Switch):
    """The webhook that sets the address of the API server in pods."""

    host: str = ""
    """The address."""


class SystemComponentsConfig(Switch):
    """The webhook that places system components on dedicated nodes."""

    node_selector: dict[str, str] = {}
    """The labels of these nodes; all nodes if empty."""
    pod_node_selector: dict[str, str] = {}
    """Labels to add to the node selector of pods."""
    pod_tolerations: list[Toleration] = []
    """Tolerations to add to pods."""


class PodSchedulerName(Switch):
    """The webhook that assigns pods to a scheduler."""

    scheduler_name: str | None = None
    """The scheduler; `default-scheduler` by default."""


class ProjectedTokenMount(Switch):
    """The webhook that mounts a token into pods that do not mount one automatically."""

    expiration_seconds: int | None = None
    """The lifetime of the token in seconds; 43200 by default."""


class NodeAgentAuthorizer(Switch):
    """The authorizer that restricts a node's agent to its own objects."""

    machine_namespace: str | None = None
    """The namespace of the nodes' Machines; absent if there are none."""
    authorize_with_selectors: bool = False
    """Whether to consider the selectors of requests as well."""


class Webhooks(Value):
    """The webhooks to serve."""

    crd_deletion_protection: CrdDeletionProtection = field(default_factory=CrdDeletionProtection)
    """Refuses to delete protected CRDs and their objects."""
    endpoint_slice_hints: Switch = field(default_factory=Switch)
    """Adds topology hints to EndpointSlices."""
    extension_validation: ExtensionValidation = field(default_factory=ExtensionValidation)
    """Validates extension objects."""
    high_availability_config: HighAvailabilityConfig = field(default_factory=HighAvailabilityConfig)
    """Spreads replicas over nodes and zones."""
    kubernetes_service_host: KubernetesServiceHost = field(default_factory=KubernetesServiceHost)
    """Sets the address of the API server in pods."""
    node_agent_authorizer: NodeAgentAuthorizer = field(default_factory=NodeAgentAuthorizer)
    """Restricts a node's agent to its own objects."""
    pod_kube_api_server_load_balancing: Switch = field(
        name="podKubeAPIServerLoadBalancing", default_factory=Switch
    )
    """Routes pods to the API server through the load balancer inside the cluster."""
    pod_scheduler_name: PodSchedulerName = field(default_factory=PodSchedulerName)
    """Assigns pods to a scheduler."""
    pod_topology_spread_constraints: Switch = field(default_factory=Switch)
    """Makes topology spread constraints count pods per ReplicaSet."""
    projected_token_mount: ProjectedTokenMount = field(default_factory=ProjectedTokenMount)
    """Mounts a token into pods that do not mount one automatically."""
    seccomp_profile: Switch = field(default_factory=Switch)
    """Gives pods the default seccomp profile of the container runtime."""
    system_components_config: SystemComponentsConfig = field(default_factory=SystemComponentsConfig)
    """Keeps system components on dedicated nodes."""
    token_invalidator: Switch = field(default_factory=Switch)
    """Replaces the tokens of marked Secrets."""
    vpa_in_place_updates: Switch = field(default_factory=Switch)
    """Lets vertical pod autoscalers resize pods in place."""

    @property
    def switches(self) -> list[Switch]:
        """The settings of all webhooks."""
        return [getattr(self, name) for name in self.__struct_fields__]
