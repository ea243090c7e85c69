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
    """The number of objects reconciled in parallel."""


class GardenController(Syncs):
    """The controller that reconciles the Garden."""

    concurrent_syncs: int = 1
    """The number of objects reconciled in parallel."""
    sync_period: Duration = Duration(hours=1)
    """The time between two reconciliations without a change."""
    etcd_config: EtcdConfig = field(default_factory=EtcdConfig)
    """Settings of etcd-druid."""


class ConditionThreshold(Value):
    """The time for which a condition stays `Progressing` before it becomes `False`."""

    type: str
    """The type of the condition."""
    duration: Duration
    """The time."""


class GardenCareController(Value):
    """The controller that checks the health of the Garden."""

    sync_period: Duration = Duration(minutes=1)
    """The time between two checks."""
    condition_thresholds: list[ConditionThreshold] = []
    """The times for which conditions stay `Progressing`, by type; zero without an entry."""
    count_labelled_resources_once: bool = False
    """Whether a ManagedResource of the virtual cluster with the label
    `care.gardener.cloud/condition-type` counts for that condition only. By default it counts for
    `VirtualComponentsHealthy` as well. Not a field of the original."""


class ExtensionCareController(Syncs):
    """The controller that checks the health of Extensions."""

    sync_period: Duration = Duration(minutes=1)
    """The time between two checks."""
    condition_thresholds: list[ConditionThreshold] = []
    """The times for which conditions stay `Progressing`, by type; zero without an entry."""


class GardenletDeployer(Syncs):
    """The controller that deploys the first gardenlet of unmanaged seeds."""

    concurrent_syncs: int = 1
    """The number of objects reconciled in parallel."""


class NetworkPolicies(Syncs):
    """The controller that creates the NetworkPolicies of the runtime cluster."""

    additional_namespace_selectors: list[LabelSelector] = []
    """Selectors of namespaces to serve in addition to the default ones."""


class Controllers(Value):
    """The settings of the controllers."""

    garden: GardenController = field(default_factory=GardenController)
    """The controller that reconciles the Garden."""
    garden_care: GardenCareController = field(default_factory=GardenCareController)
    """The controller that checks the health of the Garden."""
    gardenlet_deployer: GardenletDeployer = field(default_factory=GardenletDeployer)
    """The controller that deploys the first gardenlet of unmanaged seeds."""
    network_policy: NetworkPolicies = field(default_factory=NetworkPolicies)
    """The controller that creates the NetworkPolicies of the runtime cluster."""
    vpa_eviction_requirements: Syncs = field(default_factory=Syncs)
    """The controller that restricts VPA evictions to the maintenance window."""
    extension: Syncs = field(default_factory=Syncs)
    """The controller that installs Extensions."""
    extension_care: ExtensionCareController = field(default_factory=ExtensionCareController)
    """The controller that checks the health of Extensions."""
    extension_reference: Syncs = field(default_factory=Syncs)
    """The controller that protects objects that Extensions reference."""
    extension_required_runtime: Syncs = field(default_factory=Syncs)
    """The controller that determines which Extensions the runtime cluster requires."""
    extension_required_virtual: Syncs = field(default_factory=Syncs)
    """The controller that determines which Extensions the virtual cluster requires."""
