"""`controllers` of the resource manager's configuration (spec 10 §13.2, spec 11 §8)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Literal

from msgspec import Meta, field

from pergola.api.core_v1 import LabelSelector
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration

NonEmpty = Annotated[str, Meta(min_length=1)]
Workers = Annotated[int, Meta(ge=1)]


class ManagedResources(Value):
    """The controller that applies the objects of ManagedResources."""

    concurrent_syncs: Workers = 5
    """The number of ManagedResources reconciled in parallel."""
    sync_period: Duration = Duration(minutes=1)
    """The longest time between two reconciliations of a ManagedResource."""
    always_update: bool = False
    """Whether to write objects even if nothing differs."""
    managed_by_label_value: NonEmpty = "gardener"
    """The value of the label `resources.gardener.cloud/managed-by` on every managed object."""


class Health(Value):
    """The controller that checks whether managed objects are healthy and rolled out."""

    concurrent_syncs: Workers = 5
    """The number of ManagedResources checked in parallel."""
    sync_period: Duration = Duration(minutes=1)
    """The longest time between two checks of a ManagedResource."""


class Secrets(Value):
    """The controller that protects the Secrets that ManagedResources reference."""

    concurrent_syncs: Workers = 5
    """The number of Secrets reconciled in parallel."""
    mode: Literal["Protect", "RemoveOnly"] = "Protect"
    """`RemoveOnly` removes finalizers and never adds any."""


class Switch(Value):
    """A feature that is off by default."""

    enabled: bool = False
    """Whether it is enabled."""


class OptionalController(Switch):
    """A controller that is off by default.

    Fields that are None have no effect while the controller is disabled, and get their defaults if
    it is enabled.
    """

    concurrent_syncs: int | None = None
    """The number of objects reconciled in parallel."""

    @property
    def workers(self) -> int:
        """The number of objects reconciled in parallel; 0 while the controller is off."""
        return self.concurrent_syncs or 0 if self.enabled else 0


class GarbageCollector(Switch):
    """The controller that deletes unused immutable ConfigMaps and Secrets."""

    sync_period: Duration | None = None
    """The time between two collections; 1h by default."""
    minimum_age: Duration | None = None
    """The minimum age of a collected object; 10m by default. Not in the original."""


class CsrApprover(OptionalController):
    """The controller that approves or denies nodes' certificate requests; one worker by default."""

    machine_namespace: str | None = None
    """The namespace of the nodes' Machines; absent if there are none."""


class IngressControllerSelector(Value):
    """The pods of the ingress controller."""

    namespace: str = ""
    """Their namespace."""
    pod_selector: LabelSelector | None = None
    """Their labels."""


class NetworkPolicies(OptionalController):
    """The controller that writes the NetworkPolicies of Services; five workers by default."""

    namespace_selectors: list[LabelSelector] = []
    """The namespaces to serve; all if empty."""
    ingress_controller_selector: IngressControllerSelector | None = None
    """The pods that must reach the backends of Ingresses."""
    only_for_matching_pods: bool = True
    """Whether to write policies for labelled pods only if their namespace has such a pod, as the
    original does. Not in the original."""


class TokenRequestor(OptionalController):
    """The controller that requests and renews tokens; five workers by default."""

    class_: str | None = field(name="class", default=None)
    """The class of Secrets to serve, or `*` for all; `shoot` by default."""
    audiences: list[str] | None = None
    """The audiences of the tokens; `gardener` by default, those of the target's API server if
    empty. Not in the original."""
    service_account_namespace: str = ""
    """The namespace of all ServiceAccounts, instead of the annotation of each Secret. Not in the
    original."""


class TokenInvalidator(OptionalController):
    """The controller that invalidates unused static tokens; five workers by default."""


class NodeCriticalComponents(OptionalController):
    """The controller that untaints nodes once their critical pods run; five workers by default."""

    backoff: Duration | None = None
    """The time between two checks of a node that is not ready; 10s by default."""
    critical_namespaces: list[str] | None = None
    """The namespaces of critical pods; `kube-system` by default."""


class NodeAgentReconciliationDelay(Switch):
    """The controller that spreads the reconciliations of node agents over time."""

    min_delay: Duration | None = None
    """The shortest delay; 0s by default."""
    max_delay: Duration | None = None
    """The longest delay; 5m by default."""


class IstioClusterConfiguration(OptionalController):
    """The controller that writes EnvoyFilters for DestinationRules; five workers by default."""


class Controllers(Value):
    """The settings of the controllers."""

    cluster_id: str = field(name="clusterID", default="")
    """The id of the source cluster; `<cluster>` and `<default>` read it from the cluster."""
    resource_class: NonEmpty = "resources"
    """The class of ManagedResources that this instance serves; `*` for all."""
    cache_sync_timeout: Duration = Duration(minutes=2)
    """The time limit for filling caches at startup."""
    managed_resources: ManagedResources = field(default_factory=ManagedResources)
    """Applies the objects of ManagedResources."""
    health: Health = field(default_factory=Health)
    """Checks whether managed objects are healthy and rolled out."""
    secret: Secrets = field(default_factory=Secrets)
    """Protects the Secrets that ManagedResources reference."""
    garbage_collector: GarbageCollector = field(default_factory=GarbageCollector)
    """Deletes unused immutable ConfigMaps and Secrets."""
    csr_approver: CsrApprover = field(default_factory=CsrApprover)
    """Approves or denies certificate signing requests of nodes."""
    network_policy: NetworkPolicies = field(default_factory=NetworkPolicies)
    """Writes the NetworkPolicies of Services."""
    token_requestor: TokenRequestor = field(default_factory=TokenRequestor)
    """Requests and renews tokens."""
    token_invalidator: TokenInvalidator = field(default_factory=TokenInvalidator)
    """Invalidates unused static tokens."""
    node_critical_components: NodeCriticalComponents = field(default_factory=NodeCriticalComponents)
    """Removes the taint of nodes once their critical pods run."""
    node_agent_reconciliation_delay: NodeAgentReconciliationDelay = field(
        default_factory=NodeAgentReconciliationDelay
    )
    """Spreads the reconciliations of node agents over time."""
    istio_cluster_configuration: IstioClusterConfiguration = field(
        default_factory=IstioClusterConfiguration
    )
    """Writes EnvoyFilters for the clusters of DestinationRules."""
