"""Parts of Kubernetes' own API that our types contain."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Literal

from msgspec import field

from pergola.api.objects import JsonObject
from pergola.api.schema.declare import ATOMIC, ATOMIC_LIST, Timestamp, Value, default
from pergola.api.schema.quantity import ResourceList


class LocalObjectReference(Value):
    """A reference to an object in the same namespace."""

    name: Annotated[str, default("")] = ""
    """The name of the object."""


class GroupKind(Value):
    """A kind, regardless of its version."""

    group: str
    """The API group; empty for the core group."""
    kind: str
    """The kind."""


class ObjectReference(Value):
    """A reference to an object of any kind."""

    api_version: str | None = None
    """The group and version of the object."""
    field_path: str | None = None
    """The path of a field, for a reference to a part of the object."""
    kind: str | None = None
    """The kind of the object."""
    name: str | None = None
    """The name of the object."""
    namespace: str | None = None
    """The namespace of the object; absent for cluster-scoped kinds."""
    resource_version: str | None = None
    """The version of the object when the reference was created."""
    uid: str | None = None
    """The uid, which distinguishes successive objects of the same name."""


class Condition(Value):
    """An observation about an object."""

    type: str
    """The aspect that was observed."""
    status: str
    """The result, one of `True`, `False`, `Unknown` and `Progressing`."""
    reason: str
    """The reason for the status, as one word for programs."""
    message: str
    """The reason for the status, as text for people."""
    last_transition_time: Timestamp
    """The time of the last change of the status."""
    last_update_time: Timestamp
    """The time of the last change of the reason, the message or the codes."""
    codes: list[str] = []
    """Well-known codes of the errors in the message."""


class LabelSelectorRequirement(Value):
    """A requirement on a label."""

    key: str
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """The relation of the label to the values."""
    values: Annotated[list[str], ATOMIC_LIST] = []
    """The values; none for `Exists` and `DoesNotExist`."""


class LabelSelector(Value):
    """A selector of objects by labels: all requirements must hold; without any, it matches all."""

    match_labels: dict[str, str] = {}
    """Labels with the values that they must have."""
    match_expressions: Annotated[list[LabelSelectorRequirement], ATOMIC_LIST] = []
    """Additional requirements."""


class Toleration(Value):
    """A toleration, which lets pods run on nodes with matching taints."""

    key: str = ""
    """The key of the taint; empty for any, with the operator `Exists`."""
    operator: Literal["", "Equal", "Exists"] = ""
    """The comparison of the value; empty means `Equal`."""
    value: str = ""
    """The value of the taint."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """The effect of the taint; empty for any."""
    toleration_seconds: int | None = None
    """Seconds for which a taint with effect `NoExecute` is tolerated; forever if absent."""


class Subject(Value):
    """A user, a group or a ServiceAccount, as in role bindings."""

    kind: str
    """One of `User`, `Group` and `ServiceAccount`."""
    name: str
    """The name of the subject."""
    api_group: str | None = None
    """The API group of the kind."""
    namespace: str | None = None
    """The namespace of a ServiceAccount."""


class ScopeSelectorRequirement(Value):
    """A requirement on the scope of an object."""

    operator: str
    """The relation of the scope to the values."""
    scope_name: str
    """The scope."""
    values: Annotated[list[str], ATOMIC_LIST] = []
    """The values."""


class ScopeSelector(Value):
    """A selector of objects by their scope: all requirements must hold."""

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
    """The kind of the object."""
    metadata: JsonObject = field(default_factory=dict)
    """Labels and annotations of the object."""
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    """The limits."""
    status: ResourceQuotaStatus | None = None
    """The use; ignored in a template."""
