"""`extensions.gardener.cloud/v1alpha1`: the Network and the Cluster (spec 40 §1.2, §3.3)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from pergola.api import marks
from pergola.api.core_v1 import Condition
from pergola.api.field_errors import IMMUTABLE
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.api.schema.crd import crd
from pergola.api.schema.declare import (
    AGE,
    ATOMIC,
    INT32,
    NULLABLE,
    Column,
    Object,
    Timestamp,
    Value,
    kind,
    rule,
)

GROUP: Final = "extensions.gardener.cloud"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
NETWORK: Final = GroupVersionKind(GROUP, VERSION, "Network")
CLUSTER: Final = GroupVersionKind(GROUP, VERSION, "Cluster")

_STAYS: Final = rule("self == oldSelf", "Value is immutable")
# Same message as the webhook.
_FROZEN: Final = rule("self == oldSelf", IMMUTABLE)
# A rule of an optional field is not evaluated when the field is added or removed.
_CLASS_COMES_OR_GOES: Final[JsonObject] = {
    "rule": (
        "has(self.class) == has(oldSelf.class)"
        " || (has(self.class) ? self.class : oldSelf.class) in ['', 'shoot']"
    ),
    "message": "Value is immutable",
    "fieldPath": ".class",
}
_SAID: Final = "has(self.ipFamilies) && self.ipFamilies.size() > 0"
_NOW: Final = f"({_SAID} ? self.ipFamilies : ['IPv4'])"
_BEFORE: Final = _NOW.replace("self", "oldSelf")
_NOW_TEXT: Final = f"({_SAID} ? self.ipFamilies.join(' ') : 'IPv4')"
_BEFORE_TEXT: Final = _NOW_TEXT.replace("self", "oldSelf")
_EITHER: Final = "[['IPv4'], ['IPv4', 'IPv6']]"
_FAMILIES_CHANGE: Final[JsonObject] = {
    "rule": f"{_NOW} == {_BEFORE} || ({_BEFORE} in {_EITHER} && {_NOW} in {_EITHER})",
    "message": "unsupported IP family update",
    "messageExpression": (
        f"'unsupported IP family update: oldIPFamilies=[' + {_BEFORE_TEXT}"
        f" + '], newIPFamilies=[' + {_NOW_TEXT} + ']'"
    ),
    "reason": "FieldValueForbidden",
    "fieldPath": ".ipFamilies",
}
_CHANGES: Final = Meta(
    extra_json_schema={"x-kubernetes-validations": [_CLASS_COMES_OR_GOES, _FAMILIES_CHANGE]}
)
# The API server needs both lengths to estimate the cost of the rules above.
_Family = Annotated[Literal["IPv4", "IPv6"], Meta(extra_json_schema={"maxLength": 4})]
IpFamilies = Annotated[list[_Family], Meta(max_length=2)]


class NetworkSpec(Value):
    """The desired network of a Shoot; only the plugin understands `providerConfig`."""

    type: Annotated[str, _FROZEN]
    """The plugin that creates the network, such as `calico`; immutable."""
    pod_cidr: Annotated[str, _FROZEN] = field(name="podCIDR")
    """The address range of pods; immutable."""
    service_cidr: Annotated[str, _FROZEN] = field(name="serviceCIDR")
    """The address range of Services; immutable."""
    ip_families: IpFamilies = field(name="ipFamilies", default_factory=list)
    """The IP families, the primary one first; IPv4 if empty."""
    provider_config: JsonObject | None = None
    """The plugin's configuration, with its own `apiVersion` and `kind`."""
    class_: Annotated[str, _STAYS] | None = field(name="class", default=None)
    """The kind of cluster that the extension serves: `shoot` (the default), `seed` or `garden`."""


class LastOperation(Value):
    """The extension's last or current operation."""

    type: str
    """One of `Create`, `Reconcile`, `Delete`, `Migrate` and `Restore`."""
    state: str
    """The state: `Processing`, `Succeeded` or `Error`."""
    progress: Annotated[int, INT32]
    """The progress in percent."""
    description: str
    """The completed steps, or the failure."""
    last_update_time: Timestamp
    """The time of this report."""


class LastError(Value):
    """The error of the last operation."""

    description: str
    """The problem and its remedy."""
    codes: list[str] = []
    """Well-known codes that classify the error."""
    task_id: str | None = field(name="taskID", default=None)
    """The part of the operation that failed."""
    last_update_time: Timestamp | None = None
    """The time of this report."""


class CrossVersionObjectReference(Value):
    """A reference to an object in the same namespace."""

    kind: str
    """The kind of the object."""
    name: str
    """The name of the object."""
    api_version: str | None = None
    """The group and version of the object."""


class NamedResourceReference(Value):
    """An object that `state` refers to by name."""

    name: str
    """The name that `state` uses."""
    resource_ref: Annotated[CrossVersionObjectReference, ATOMIC]
    """The object."""


class ExtensionStatus(Value):
    """The status of every extension resource, written only by its extension (spec 40 §2.4)."""

    provider_status: JsonObject | None = None
    """The provider's own status, with its own `apiVersion` and `kind`."""
    conditions: list[Condition] = []
    """The health of the resource, by aspect."""
    last_operation: LastOperation | None = None
    """The extension's last or current operation."""
    last_error: LastError | None = None
    """The error of the last operation; absent if it succeeded."""
    observed_generation: int | None = None
    """The generation of the last finished or failed operation."""
    observed_timestamp: str | None = None
    """The annotation `gardener.cloud/timestamp` of the last accepted request."""
    state: JsonObject | None = None
    """Data that must survive the move of the control plane to another seed."""
    resources: list[NamedResourceReference] = []
    """The objects that `state` refers to."""


class NetworkStatus(ExtensionStatus):
    """The status of a Network."""

    ip_families: IpFamilies = field(name="ipFamilies", default_factory=list)
    """The IP families in use; fewer than in the spec while nodes are migrating."""


@kind(
    API_VERSION,
    status=True,
    labels={marks.DELETION_PROTECTED: "true"},
    columns=(
        Column("Type", ".spec.type"),
        Column("Pod CIDR", ".spec.podCIDR"),
        Column("Service CIDR", ".spec.serviceCIDR"),
        Column("Status", ".status.lastOperation.state"),
        AGE,
    ),
)
class Network(Object):
    """The pod network of a Shoot, provided by the extension of its type."""

    spec: Annotated[NetworkSpec, _CHANGES]
    """The desired state of the network."""
    status: NetworkStatus | None = None
    """The observed state, written by the extension."""


Foreign = Annotated[JsonObject | None, NULLABLE]


class ClusterSpec(Value):
    """A Shoot and related objects that extensions may need."""

    cloud_profile: Foreign = None
    """The CloudProfile of the Shoot."""
    seed: Foreign = None
    """The Seed of the Shoot, which runs its control plane."""
    shoot: Foreign = None
    """The Shoot."""


@kind(
    API_VERSION,
    namespaced=False,
    status=True,
    labels={marks.DELETION_PROTECTED: "true"},
    columns=(AGE,),
)
class Cluster(Object):
    """The Shoot whose control plane is in the namespace of the same name."""

    spec: ClusterSpec
    """The Shoot and its related objects."""


def network_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Networks."""
    return crd(Network)


def cluster_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Clusters."""
    return crd(Cluster)
