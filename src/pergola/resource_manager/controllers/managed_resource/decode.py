"""Decoding of the documents in Secrets (spec 10 §4.3).

A broken document does not prevent others from being read, and never looks like an empty one: the
result says that something is missing (spec 10 B1).
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pergola.api import marks
from pergola.api.object_names import name_problem
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    annotations_of,
    metadata_of,
    namespace_of,
)
from pergola.bundle.content import Budget, BudgetExceeded, DecompressionError, read_documents

Scope = Callable[[GroupVersionKind], bool | None]
"""Returns whether a kind is namespaced in the target, or None if the target does not serve it."""


@dataclass(frozen=True, slots=True)
class SecretData:
    """A Secret's name and its decoded data."""

    name: str
    data: Mapping[str, bytes]


class Place(NamedTuple):
    """The place of an object in the Secrets of its ManagedResource."""

    secret: str
    key: str
    document: int

    def __str__(self) -> str:
        return f"Secret {self.secret}, key {self.key}, document {self.document}"


@dataclass(frozen=True, slots=True)
class Decoded:
    """The content of a ManagedResource's Secrets.

    Attributes:
        objects: the objects to apply, in the order of Secrets, keys and documents. If several
            documents describe one object, the last one counts.
        released: the objects in mode `Ignore`.
        errors: one sentence for each part that could not be read.
        checksum: the checksum of the data of all objects (spec 10 §4.3).
        unknown: the kinds that the target does not know.
        has_data: whether any value has content, even if only a comment.
        places: the place of each object's document, including released objects.
    """

    objects: list[JsonObject] = field(default_factory=list)
    released: list[JsonObject] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    checksum: str = ""
    unknown: frozenset[GroupVersionKind] = frozenset()
    has_data: bool = False
    places: Mapping[tuple[GroupKind, Key], Place] = field(default_factory=dict)


def decode(secrets: Sequence[SecretData], scope: Scope, budget: Budget | None = None) -> Decoded:
    """Read all documents of all Secrets within the budget; never raises."""
    reading = _Reading(scope)
    try:
        _read(secrets, reading, budget or Budget())
    except BudgetExceeded as error:
        reading.errors.append(f"{error}; the rest was not read")
    return reading.result()


def _read(secrets: Sequence[SecretData], reading: "_Reading", budget: Budget) -> None:
    for secret in secrets:
        for key in sorted(secret.data, key=str.encode):
            value = secret.data[key]
            reading.has_data |= bool(value.strip())
            for place, obj in _documents(secret.name, key, value, reading.errors, budget):
                reading.take(obj, value, place)


class _Reading:
    """The content read so far."""

    def __init__(self, scope: Scope) -> None:
        self.errors: list[str] = []
        self.has_data = False
        self._scope = scope
        self._objects: dict[object, JsonObject] = {}
        self._released: list[JsonObject] = []
        self._places: dict[tuple[GroupKind, Key], Place] = {}
        self._unknown: set[GroupVersionKind] = set()
        self._checksum = hashlib.sha256()

    def take(self, obj: JsonObject, value: bytes, place: Place) -> None:
        """Record an object, read from a value, where it belongs."""
        gvk = GroupVersionKind.of(obj)
        namespaced = self._scope(gvk)
        if namespaced is None:
            self._unknown.add(gvk)
        obj = _placed(obj, namespaced)
        identity = (gvk.group_kind, Key.of(obj))
        self._places[identity] = place
        if annotations_of(obj).get(marks.MODE) == marks.MODE_IGNORE:
            self._released.append(obj)
            return
        self._checksum.update(value)
        self._objects.pop(identity, None)
        self._objects[identity] = obj

    def result(self) -> Decoded:
        return Decoded(
            objects=list(self._objects.values()),
            released=self._released,
            errors=self.errors,
            checksum=self._checksum.hexdigest(),
            unknown=frozenset(self._unknown),
            has_data=self.has_data,
            places=self._places,
        )


def _documents(
    secret: str, key: str, value: bytes, errors: list[str], budget: Budget
) -> Iterator[tuple[Place, JsonObject]]:
    where = f"Secret {secret}, key {key}"
    try:
        for document in read_documents(key, value, budget):
            if document.error:
                errors.append(f"{where}, document {document.index}: {document.error}")
                continue
            for path, item in _items(document.value):
                problem = _problem(item)
                if problem is not None:
                    errors.append(f"{where}, document {document.index}{path}: {problem}")
                elif isinstance(item, dict):
                    yield Place(secret, key, document.index), item
    except DecompressionError as error:
        errors.append(f"{where}: {error}")


def _items(value: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield a value, or the items of a list of objects, each with its path.

    A list is a `List`, or what a server returns for a kind, such as a `RoleList`, whose items may
    leave out their kind.
    """
    if not isinstance(value, dict) or not _is_list(value):
        yield path, value
        return
    kind = str(value["kind"]).removesuffix("List")
    known = {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}
    items = value.get("items")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        completed = {**known, **item} if isinstance(item, dict) else item
        yield from _items(completed, f"{path}{'.' if path else ', '}items[{index}]")


def _is_list(value: JsonObject) -> bool:
    kind = value.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return False
    metadata = value.get("metadata")
    is_named = isinstance(metadata, dict) and bool(metadata.get("name"))
    has_items = isinstance(value.get("items"), list | None)
    return not is_named and has_items and (kind == "List" or "items" in value)


def _problem(value: JsonValue) -> str | None:
    """Return why a document is not an object that can be addressed by its name.

    An object that cannot be read back by its name can be neither compared nor deleted; without a
    name, it would be created again in every run.
    """
    if value is None:
        return None  # a document without content
    if not isinstance(value, dict):
        return f"expected an object, found {type(value).__name__}"
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return "metadata is missing" if metadata is None else "metadata must be a map"
    if problem := name_problem(metadata.get("name")):
        generated = "; generateName is not supported" if metadata.get("generateName") else ""
        return f"metadata.name {problem}{generated}"
    namespace = metadata.get("namespace")
    problem = name_problem(namespace) if namespace not in (None, "") else None
    return f"metadata.namespace {problem}" if problem else None


def _placed(obj: JsonObject, namespaced: bool | None) -> JsonObject:
    """Return the object in its namespace (spec 10 §4.3)."""
    metadata, namespace = metadata_of(obj), namespace_of(obj)
    if namespaced is False:
        if "namespace" in metadata:
            metadata = {name: value for name, value in metadata.items() if name != "namespace"}
            return {**obj, "metadata": metadata}
        return obj
    if namespace or (namespaced is None and obj.get("kind") == "Namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": "default"}}
