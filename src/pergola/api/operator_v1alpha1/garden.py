"""The Garden (spec 20 §4, §5)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final

from pergola.api import marks
from pergola.api.extensions_v1alpha1 import NamedResourceReference
from pergola.api.objects import JsonObject, uid_of
from pergola.api.operator_v1alpha1.facets import NOT_EMPTY, LocalReference
from pergola.api.operator_v1alpha1.names import API_VERSION
from pergola.api.operator_v1alpha1.runtime_cluster import RuntimeCluster
from pergola.api.operator_v1alpha1.status import GardenStatus
from pergola.api.operator_v1alpha1.virtual_cluster import VirtualCluster
from pergola.api.schema.crd import crd
from pergola.api.schema.declare import AGE, Column, Object, Value, condition_column, kind

RUNTIME_COMPONENTS_HEALTHY: Final = "RuntimeComponentsHealthy"
VIRTUAL_COMPONENTS_HEALTHY: Final = "VirtualComponentsHealthy"
VIRTUAL_GARDEN_API_SERVER_AVAILABLE: Final = "VirtualGardenAPIServerAvailable"
OBSERVABILITY_COMPONENTS_HEALTHY: Final = "ObservabilityComponentsHealthy"
CARE_CONDITIONS: Final = (
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    OBSERVABILITY_COMPONENTS_HEALTHY,
)
"""The conditions of a Garden, in the order in which they are stored."""

_Text = Annotated[str, NOT_EMPTY]


class DnsProvider(Value):
    """An account with a DNS provider."""

    name: _Text
    """The name that domains use."""
    type: _Text
    """The type of the provider."""
    secret_ref: LocalReference
    """The Secret with the credentials."""
    provider_config: JsonObject | None = None
    """The configuration of the records, which only the provider understands."""


class DnsManagement(Value):
    """The management of the garden's DNS records."""

    providers: Annotated[list[DnsProvider], NOT_EMPTY]
    """The accounts; the first one is the default for domains."""


class GardenExtension(Value):
    """An extension to use for the garden itself."""

    type: _Text
    """The type of the extension."""
    provider_config: JsonObject | None = None
    """The configuration of the extension, which only it understands."""


class GardenSpec(Value):
    """The desired state of a garden."""

    runtime_cluster: RuntimeCluster
    """The cluster that hosts the garden."""
    virtual_cluster: VirtualCluster
    """The cluster that the garden provides."""
    dns: DnsManagement | None = None
    """The management of DNS records; none are created if absent."""
    extensions: list[GardenExtension] = []
    """Extensions to use for the garden itself."""
    resources: list[NamedResourceReference] = []
    """Objects that extensions refer to by name."""


@kind(
    API_VERSION,
    short=("grdn",),
    namespaced=False,
    status=True,
    labels={marks.DELETION_PROTECTED: "true"},
    columns=(
        Column("K8S Version", ".spec.virtualCluster.kubernetes.version"),
        Column("Gardener Version", ".status.gardener.version"),
        Column("Last Operation", ".status.lastOperation.state"),
        condition_column("Runtime", RUNTIME_COMPONENTS_HEALTHY),
        condition_column("Virtual", VIRTUAL_COMPONENTS_HEALTHY),
        condition_column("API Server", VIRTUAL_GARDEN_API_SERVER_AVAILABLE),
        condition_column("Observability", OBSERVABILITY_COMPONENTS_HEALTHY),
        AGE,
    ),
)
class Garden(Object):
    """A Gardener landscape: its system components, its virtual cluster and the Gardener in it."""

    spec: GardenSpec
    """The desired state of the garden."""
    status: GardenStatus | None = None
    """The observed state, written by the operator."""

    @property
    def uid(self) -> str:
        """`metadata.uid`, empty before the Garden is created."""
        return uid_of({"metadata": self.metadata})


def garden_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Gardens."""
    return crd(Garden)
