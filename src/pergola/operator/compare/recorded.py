"""The original's side of a comparison: the objects of a landscape, from a dump."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    annotations_of,
    map_at,
    maps_at,
    metadata_of,
    name_of,
    namespace_of,
)
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.bundle.content import (
    Budget,
    BudgetExceeded,
    DecompressionError,
    decode_data,
    read_documents,
)
from pergola.garden.components.component import Target
from pergola.operator.compare.foreign import why_foreign
from pergola.operator.compare.normalise import TEXT
from pergola.operator.compare.placed import Placed
from pergola.operator.run.references import references_of

_MANAGED_RESOURCE: Final = GroupKind("resources.gardener.cloud", "ManagedResource")
_SECRET: Final = GroupKind("", "Secret")
_WHERE: Final = re.compile(r"(runtime|virtual) cluster(?:, ManagedResource (\S+))?")
_LEFT_OUT: Final = re.compile(r"<text of \d+ characters>")
_BESIDE: Final = ("where", "namespace", "name", "labels", "annotations")
_KEPT: Final = "resources.gardener.cloud/origin"


class RecordError(Exception):
    """A dump cannot be read; the text says where and why."""


@dataclass(slots=True)
class Recorded:
    """A landscape from a dump.

    Attributes:
        objects: The objects that the operator created.
        all: All objects of the runtime cluster, including those of users and controllers.
        has_texts: Whether it includes long texts and the values of ConfigMaps.
        ignored: The number of omitted objects, by reason.
        problems: The parts that could not be read.
    """

    objects: list[Placed] = field(default_factory=list)
    all: list[JsonObject] = field(default_factory=list)
    has_texts: bool = True
    ignored: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def gardens(self) -> list[JsonObject]:
        """The Gardens in it."""
        return [each for each in self.all if GroupVersionKind.of(each) == GARDEN]

    def made_for(self, garden: JsonObject) -> list[Placed]:
        """Return the objects except the user-provided ones that a Garden names."""
        named = {(each.kind, each.key) for each in references_of(garden)}
        return [
            placed
            for placed in self.objects
            if placed.managed or (placed.obj.get("kind"), Key.of(placed.obj)) not in named
        ]

    def take(self, placed: Placed) -> None:
        """Add an object, unless neither operator creates it."""
        reason = why_foreign(placed)
        if reason is None:
            self.objects.append(placed)
        else:
            self.ignored[reason] = self.ignored.get(reason, 0) + 1


def from_rows(rows: Iterable[JsonObject]) -> Recorded:
    """Return a landscape from rows that say where each object is kept, without long texts.

    A row has `where` (`runtime cluster`, or `virtual cluster, ManagedResource x`), `apiVersion`,
    `kind`, `namespace`, `name`, `labels`, `annotations` and the fields of the object; the data of
    Secrets and ConfigMaps are lists of keys.

    Raises:
        RecordError: A row has another form.
    """
    found = Recorded(has_texts=False)
    for number, row in enumerate(rows, 1):
        where = _WHERE.fullmatch(str(row.get("where")))
        if where is None or not row.get("kind") or not row.get("name"):
            raise RecordError(f"line {number} has no kind, no name, or does not say where it is")
        cluster, managed = Target(where[1]), where[2] or ""
        obj = _object_of(row)
        if not managed and cluster is Target.RUNTIME:
            found.all.append(obj)
        found.take(Placed(cluster, managed, "", obj))
    return found


def from_objects(objects: Sequence[JsonObject]) -> Recorded:
    """Return a landscape from the objects of its runtime cluster.

    The objects of ManagedResources are read from their Secrets, so that they lack server defaults.
    """
    found = Recorded(all=list(objects))
    secrets = {Key.of(obj): obj for obj in objects if _kind(obj) == _SECRET}
    for obj in objects:
        if _kind(obj) == _MANAGED_RESOURCE and why_foreign(_applied(obj)) is None:
            for placed in _kept(obj, secrets, found.problems):
                found.take(placed)
    for obj in objects:
        if _KEPT not in annotations_of(obj):
            found.take(_applied(obj))
    return found


def objects_in(secret: JsonObject) -> Iterator[JsonObject]:
    """Yield the objects in a Secret of a ManagedResource.

    Raises:
        DecompressionError: A value cannot be read.
        BudgetExceeded: There are more than any ManagedResource contains.
    """
    budget = Budget()
    for key, value in sorted(decode_data(map_at(secret, "data")).items()):
        for document in read_documents(key, value, budget):
            if document.error is not None:
                raise DecompressionError(f"key {key}, document {document.index}: {document.error}")
            if isinstance(document.value, dict) and metadata_of(document.value):
                yield document.value


def _applied(obj: JsonObject) -> Placed:
    return Placed(Target.RUNTIME, "", "", obj)


def _kept(
    resource: JsonObject, secrets: dict[Key, JsonObject], problems: list[str]
) -> Iterator[Placed]:
    """Yield the objects of a ManagedResource."""
    name, namespace = name_of(resource), namespace_of(resource)
    cluster = Target.RUNTIME if map_at(resource, "spec").get("class") else Target.VIRTUAL
    for reference in maps_at(resource, "spec", "secretRefs"):
        key = Key(namespace, str(reference.get("name")))
        if key not in secrets:
            problems.append(f"ManagedResource {namespace}/{name}: Secret {key} is not given")
            continue
        try:
            for obj in objects_in(secrets[key]):
                yield Placed(cluster, name, "", obj)
        except (DecompressionError, BudgetExceeded) as error:
            problems.append(f"ManagedResource {namespace}/{name}: Secret {key}: {error}")


def _object_of(row: JsonObject) -> JsonObject:
    metadata = {name: row[name] for name in _BESIDE if name != "where" and row.get(name)}
    fields = {name: value for name, value in row.items() if name not in _BESIDE}
    if row.get("kind") in ("Secret", "ConfigMap"):
        keys = [*_keys(fields.pop("data", None)), *_keys(fields.pop("stringData", None))]
        fields["data"] = dict.fromkeys(keys, TEXT)
    return {**_marked(fields), "metadata": _marked(metadata)}


def _keys(value: JsonValue) -> list[str]:
    return [*map(str, value)] if isinstance(value, list) else []


def _marked(value: JsonObject) -> JsonObject:
    return {name: _mark(each) for name, each in value.items()}


def _mark(value: JsonValue) -> JsonValue:
    """Replace the dump's marks for omitted texts with ours."""
    if isinstance(value, dict):
        return _marked(value)
    if isinstance(value, list):
        return [_mark(item) for item in value]
    return TEXT if isinstance(value, str) and _LEFT_OUT.fullmatch(value) else value


def _kind(obj: JsonObject) -> GroupKind:
    return GroupVersionKind.of(obj).group_kind
