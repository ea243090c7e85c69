"""`controllers` of the operator's configuration (spec 20 §3)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from msgspec import field

from pergola.api.core_v1 import LabelSelector
from pergola.api.operator_config.etcd import EtcdConfig
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration


class Syncs(Value):
    """A controller."""

    concurrent_syncs: int = 5
    """How many objects it reconciles at once."""


class GardenController(Syncs):
    """Reconciles the Garden."""

    concurrent_syncs: int = 1
    """How many objects it reconciles at once."""
    sync_period: Duration = Duration(hours=1)
    """How long after a success the Garden is reconciled again."""
    etcd_config: EtcdConfig = field(default_factory=EtcdConfig)
    """Settings of etcd-druid."""


class ConditionThreshold(Value):
    """How long a condition stays `Progressing` before it becomes `False`."""

    type: str
    """The type of the condition."""
    duration: Duration
    """How long."""


class GardenCareController(Value):
    """Checks the health of the Garden."""

    sync_period: Duration = Duration(minutes=1)
    """The time between two checks."""
    condition_thresholds: list[ConditionThreshold] = []
    """How long conditions stay `Progressing`; not at all without an entry."""


class ExtensionCareController(Syncs):
    """Checks the health of Extensions."""

    sync_period: Duration = Duration(minutes=1)
    """The time between two checks."""
    condition_thresholds: list[ConditionThreshold] = []
    """How long conditions stay `Progressing`; not at all without an entry."""


class GardenletDeployer(Syncs):
    """Deploys the first gardenlet of unmanaged seeds."""

    concurrent_syncs: int = 1
    """How many objects it reconciles at once."""


class NetworkPolicies(Syncs):
    """Creates the NetworkPolicies of the runtime cluster."""

    additional_namespace_selectors: list[LabelSelector] = []
    """Namespaces beside the usual ones, by their labels."""


class Controllers(Value):
    """What the controllers do."""

    garden: GardenController = field(default_factory=GardenController)
    """Reconciles the Garden."""
    garden_care: GardenCareController = field(default_factory=GardenCareController)
    """Checks the health of the Garden."""
    gardenlet_deployer: GardenletDeployer = field(default_factory=GardenletDeployer)
    """Deploys the first gardenlet of unmanaged seeds."""
    network_policy: NetworkPolicies = field(default_factory=NetworkPolicies)
    """Creates the NetworkPolicies of the runtime cluster."""
    vpa_eviction_requirements: Syncs = field(default_factory=Syncs)
    """Restricts evictions by the vertical pod autoscaler to the maintenance window."""
    extension: Syncs = field(default_factory=Syncs)
    """Installs Extensions."""
    extension_care: ExtensionCareController = field(default_factory=ExtensionCareController)
    """Checks the health of Extensions."""
    extension_reference: Syncs = field(default_factory=Syncs)
    """Protects objects to which Extensions refer."""
    extension_required_runtime: Syncs = field(default_factory=Syncs)
    """Decides which Extensions the runtime cluster requires."""
    extension_required_virtual: Syncs = field(default_factory=Syncs)
    """Decides which Extensions the virtual cluster requires."""
