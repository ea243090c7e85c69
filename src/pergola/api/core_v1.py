"""Parts of Kubernetes' own API that ours contain."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Literal

from msgspec import field

from pergola.api.objects import JsonObject
from pergola.api.schema.declare import ATOMIC, ATOMIC_LIST, Timestamp, Value, default
from pergola.api.schema.quantity import ResourceList


class LocalObjectReference(Value):
    """Names an object of the same namespace."""

    name: Annotated[str, default("")] = ""
    """The name of the object."""


class GroupKind(Value):
    """Names a kind, whatever version describes it."""

    group: str
    """The API group; empty for the core group."""
    kind: str
    """The kind."""


class ObjectReference(Value):
    """Names an object of any kind."""

    api_version: str | None = None
    """The group and version of the object."""
    field_path: str | None = None
    """Names a part of the object instead of the whole."""
    kind: str | None = None
    """The kind of the object."""
    name: str | None = None
    """The name of the object."""
    namespace: str | None = None
    """The namespace of the object; absent where it has none."""
    resource_version: str | None = None
    """The version of the object to which the reference was made."""
    uid: str | None = None
    """Tells apart objects that have the same name one after the other."""


class Condition(Value):
    """An observation about an object."""

    type: str
    """Names what was observed."""
    status: str
    """The result, one of `True`, `False`, `Unknown` and `Progressing`."""
    reason: str
    """Why the status is as it is, in one word that programs can compare."""
    message: str
    """Why the status is as it is, for people."""
    last_transition_time: Timestamp
    """When the status changed last."""
    last_update_time: Timestamp
    """When the reason, the message or the codes changed last."""
    codes: list[str] = []
    """Well-known codes of the errors in the message."""


class LabelSelectorRequirement(Value):
    """What a label must be."""

    key: str
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label relates to the values."""
    values: Annotated[list[str], ATOMIC_LIST] = []
    """The values; none for `Exists` and `DoesNotExist`."""


class LabelSelector(Value):
    """Selects objects by their labels; all requirements must hold, and an empty one selects all."""

    match_labels: dict[str, str] = {}
    """Labels and the values that they must have."""
    match_expressions: Annotated[list[LabelSelectorRequirement], ATOMIC_LIST] = []
    """Further requirements."""


class Toleration(Value):
    """Lets pods run on nodes with matching taints."""

    key: str = ""
    """The key of the taint; empty for any, with the operator `Exists`."""
    operator: Literal["", "Equal", "Exists"] = ""
    """How the value is compared; empty means `Equal`."""
    value: str = ""
    """The value of the taint."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """The effect of the taint; empty for any."""
    toleration_seconds: int | None = None
    """Seconds for which a taint with effect `NoExecute` is tolerated; absent for ever."""


class Subject(Value):
    """Names a user, a group or a ServiceAccount, as bindings of roles do."""

    kind: str
    """One of `User`, `Group` and `ServiceAccount`."""
    name: str
    """The name of the subject."""
    api_group: str | None = None
    """The API group of the kind."""
    namespace: str | None = None
    """The namespace of a ServiceAccount."""


class ScopeSelectorRequirement(Value):
    """What the scope of an object must be."""

    operator: str
    """How the scope relates to the values."""
    scope_name: str
    """The scope."""
    values: Annotated[list[str], ATOMIC_LIST] = []
    """The values."""


class ScopeSelector(Value):
    """Selects objects by their scope; all requirements must hold."""

    match_expressions: Annotated[list[ScopeSelectorRequirement], ATOMIC_LIST] = []
    """The requirements."""


class ResourceQuotaSpec(Value):
    """The limits of a ResourceQuota."""

    hard: ResourceList = {}
    """The largest amount of each resource."""
    scope_selector: Annotated[ScopeSelector, ATOMIC] | None = None
    """The objects that count, by their scope."""
    scopes: Annotated[list[str], ATOMIC_LIST] = []
    """The scopes that an object must have to count."""


class ResourceQuotaStatus(Value):
    """The use of a ResourceQuota."""

    hard: ResourceList = {}
    """The largest amount of each resource."""
    used: ResourceList = {}
    """The used amount of each resource."""


class ResourceQuota(Value):
    """A ResourceQuota as a template."""

    api_version: str | None = None
    """The group and version of the object."""
    kind: str | None = None
    """What the object is."""
    metadata: JsonObject = field(default_factory=dict)
    """Labels and annotations of the object."""
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    """The limits."""
    status: ResourceQuotaStatus | None = None
    """The use; ignored in a template."""
