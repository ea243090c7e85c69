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
# A rule of an optional field is not asked when the field comes or goes.
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
# Both lengths are for the API server, which estimates from them what the rules above may cost.
_Family = Annotated[Literal["IPv4", "IPv6"], Meta(extra_json_schema={"maxLength": 4})]
IpFamilies = Annotated[list[_Family], Meta(max_length=2)]


class NetworkSpec(Value):
    """The desired network of a Shoot; only the plugin understands `providerConfig`."""

    type: Annotated[str, _FROZEN]
    """Which plugin makes the network, such as `calico`; it cannot change."""
    pod_cidr: Annotated[str, _FROZEN] = field(name="podCIDR")
    """The range of the addresses of pods; it cannot change."""
    service_cidr: Annotated[str, _FROZEN] = field(name="serviceCIDR")
    """The range of the addresses of Services; it cannot change."""
    ip_families: IpFamilies = field(name="ipFamilies", default_factory=list)
    """The IP families, the primary one first; IPv4 if there are none."""
    provider_config: JsonObject | None = None
    """The configuration of the plugin, with an `apiVersion` and a `kind` of its own."""
    class_: Annotated[str, _STAYS] | None = field(name="class", default=None)
    """Where the extension works: `shoot` if absent or empty, else `seed` or `garden`."""


class LastOperation(Value):
    """What the extension did last, or does now."""

    type: str
    """One of `Create`, `Reconcile`, `Delete`, `Migrate` and `Restore`."""
    state: str
    """How it went: `Processing`, `Succeeded` or `Error`."""
    progress: Annotated[int, INT32]
    """In percent."""
    description: str
    """What was done, or what went wrong."""
    last_update_time: Timestamp
    """When this was written."""


class LastError(Value):
    """Why the last operation failed."""

    description: str
    """What went wrong, and what to do."""
    codes: list[str] = []
    """Whom the error concerns, in well-known codes."""
    task_id: str | None = field(name="taskID", default=None)
    """Which part of the operation failed."""
    last_update_time: Timestamp | None = None
    """When this was written."""


class CrossVersionObjectReference(Value):
    """Names an object of the same namespace, whatever version describes it."""

    kind: str
    """What the object is."""
    name: str
    """The name of the object."""
    api_version: str | None = None
    """The group and version of the object."""


class NamedResourceReference(Value):
    """An object that `state` refers to by a name."""

    name: str
    """The name that `state` uses."""
    resource_ref: Annotated[CrossVersionObjectReference, ATOMIC]
    """The object."""


class ExtensionStatus(Value):
    """The status of every extension resource, written by its extension only (spec 40 §2.4)."""

    provider_status: JsonObject | None = None
    """The provider's own status, with an `apiVersion` and a `kind` of its own."""
    conditions: list[Condition] = []
    """The health of the resource, by aspect."""
    last_operation: LastOperation | None = None
    """The operation of the extension that runs now or ran last."""
    last_error: LastError | None = None
    """Why the last operation failed; absent if it did not."""
    observed_generation: int | None = None
    """The generation of the last finished or failed operation."""
    observed_timestamp: str | None = None
    """The annotation `gardener.cloud/timestamp` of the last request that was picked up."""
    state: JsonObject | None = None
    """Data that must survive the move of the control plane to another seed."""
    resources: list[NamedResourceReference] = []
    """The objects that `state` refers to."""


class NetworkStatus(ExtensionStatus):
    """The status of a Network."""

    ip_families: IpFamilies = field(name="ipFamilies", default_factory=list)
    """The IP families that are rolled out; fewer than in the spec while nodes are migrated."""


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
    """The network between the pods of a Shoot, made by the extension of its type."""

    spec: Annotated[NetworkSpec, _CHANGES]
    """The desired state of the network."""
    status: NetworkStatus | None = None
    """What the extension has to say."""


Foreign = Annotated[JsonObject | None, NULLABLE]


class ClusterSpec(Value):
    """What extensions may want to know of a Shoot, each as a whole object."""

    cloud_profile: Foreign = None
    """The profile of the cloud in which the nodes are."""
    seed: Foreign = None
    """The cluster in which the control plane is."""
    shoot: Foreign = None
    """The cluster that the extensions work for."""


@kind(
    API_VERSION,
    namespaced=False,
    labels={marks.DELETION_PROTECTED: "true"},
    columns=(AGE,),
)
class Cluster(Object):
    """The Shoot whose control plane is in the namespace of the same name."""

    spec: ClusterSpec
    """What extensions may want to know of it."""


def network_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Networks."""
    return crd(Network)


def cluster_crd() -> JsonObject:
    """Return the CustomResourceDefinition of Clusters."""
    return crd(Cluster)
