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
    """Applies the objects of ManagedResources."""

    concurrent_syncs: Workers = 5
    """How many ManagedResources are reconciled at once."""
    sync_period: Duration = Duration(minutes=1)
    """After which time a ManagedResource is reconciled again at the latest."""
    always_update: bool = False
    """Whether objects are written even where nothing differs."""
    managed_by_label_value: NonEmpty = "gardener"
    """The value of the label `resources.gardener.cloud/managed-by` on every managed object."""


class Health(Value):
    """Checks whether managed objects are healthy and rolled out."""

    concurrent_syncs: Workers = 5
    """How many ManagedResources are checked at once."""
    sync_period: Duration = Duration(minutes=1)
    """After which time a ManagedResource is checked again at the latest."""


class Secrets(Value):
    """Guards the Secrets that ManagedResources name."""

    concurrent_syncs: Workers = 5
    """How many Secrets are reconciled at once."""
    mode: Literal["Protect", "RemoveOnly"] = "Protect"
    """`RemoveOnly` takes finalizers off and never adds one."""


class Switch(Value):
    """Something that runs only where it is asked for."""

    enabled: bool = False
    """Whether it runs."""


class OptionalController(Switch):
    """A controller that runs only where it is asked for.

    What is None here has no effect while the controller is off; once it is on, every field with a
    default has it.
    """

    concurrent_syncs: int | None = None
    """How many objects are reconciled at once."""

    @property
    def workers(self) -> int:
        """How many objects are reconciled at once; 0 while the controller is off."""
        return self.concurrent_syncs or 0 if self.enabled else 0


class GarbageCollector(Switch):
    """Deletes immutable ConfigMaps and Secrets that nobody uses any more."""

    sync_period: Duration | None = None
    """The time between two collections; 1h unless given."""
    minimum_age: Duration | None = None
    """How old an object must be to be collected; 10m unless given. Not in the original."""


class CsrApprover(OptionalController):
    """Approves or denies certificate signing requests of nodes; one worker unless given."""

    machine_namespace: str | None = None
    """Where the Machines of the nodes are; absent where there are none."""


class IngressControllerSelector(Value):
    """Which pods are the ingress controller."""

    namespace: str = ""
    """Their namespace."""
    pod_selector: LabelSelector | None = None
    """Their labels."""


class NetworkPolicies(OptionalController):
    """Writes the NetworkPolicies that Services ask for; five workers unless given."""

    namespace_selectors: list[LabelSelector] = []
    """In which namespaces; in all if there is no selector."""
    ingress_controller_selector: IngressControllerSelector | None = None
    """The pods that must reach what Ingresses expose."""
    only_for_matching_pods: bool = False
    """Whether policies are written only where a pod has the label that asks for them."""


class TokenRequestor(OptionalController):
    """Requests tokens and keeps them fresh; five workers unless given."""

    class_: str | None = field(name="class", default=None)
    """The class of the Secrets to serve; `*` for all, `shoot` unless given."""
    audiences: list[str] | None = None
    """The audiences of the tokens; only `gardener` unless given, those of the target's API server
    if empty. Not in the original."""
    service_account_namespace: str = ""
    """The namespace of all ServiceAccounts, instead of the annotation of each Secret. Not in the
    original."""


class TokenInvalidator(OptionalController):
    """Makes static tokens that nobody uses invalid; five workers unless given."""


class NodeCriticalComponents(OptionalController):
    """Takes the taint off nodes whose critical pods run; five workers unless given."""

    backoff: Duration | None = None
    """The time between two looks at a node that is not ready; 10s unless given."""
    critical_namespaces: list[str] | None = None
    """Where the critical pods are; only `kube-system` unless given."""


class NodeAgentReconciliationDelay(Switch):
    """Spreads the reconciliations of node agents over time."""

    min_delay: Duration | None = None
    """The shortest delay; 0s unless given."""
    max_delay: Duration | None = None
    """The longest delay; 5m unless given."""


class IstioClusterConfiguration(OptionalController):
    """Keeps EnvoyFilters for the clusters of DestinationRules; five workers unless given."""


class Controllers(Value):
    """What the controllers do."""

    cluster_id: str = field(name="clusterID", default="")
    """The id of the source cluster; `<cluster>` and `<default>` read it from the cluster."""
    resource_class: NonEmpty = "resources"
    """For which class of ManagedResources this instance is responsible; `*` for all."""
    cache_sync_timeout: Duration = Duration(minutes=2)
    """How long caches may take to fill at start."""
    managed_resources: ManagedResources = field(default_factory=ManagedResources)
    """Applies the objects of ManagedResources."""
    health: Health = field(default_factory=Health)
    """Checks whether managed objects are healthy and rolled out."""
    secret: Secrets = field(default_factory=Secrets)
    """Guards the Secrets that ManagedResources name."""
    garbage_collector: GarbageCollector = field(default_factory=GarbageCollector)
    """Deletes immutable ConfigMaps and Secrets that nobody uses any more."""
    csr_approver: CsrApprover = field(default_factory=CsrApprover)
    """Approves or denies certificate signing requests of nodes."""
    network_policy: NetworkPolicies = field(default_factory=NetworkPolicies)
    """Writes the NetworkPolicies that Services ask for."""
    token_requestor: TokenRequestor = field(default_factory=TokenRequestor)
    """Requests tokens and keeps them fresh."""
    token_invalidator: TokenInvalidator = field(default_factory=TokenInvalidator)
    """Makes static tokens that nobody uses invalid."""
    node_critical_components: NodeCriticalComponents = field(default_factory=NodeCriticalComponents)
    """Takes the taint off nodes whose critical pods run."""
    node_agent_reconciliation_delay: NodeAgentReconciliationDelay = field(
        default_factory=NodeAgentReconciliationDelay
    )
    """Spreads the reconciliations of node agents over time."""
    istio_cluster_configuration: IstioClusterConfiguration = field(
        default_factory=IstioClusterConfiguration
    )
    """Keeps EnvoyFilters for the clusters of DestinationRules."""
