"""Collection of objects into the content of a ManagedResource's Secret (spec 10 §12).

The same objects yield the same bytes, in whatever order they were added: only then does the name of
the Secret reveal whether anything changed.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import brotli
import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, Key, name_of, namespace_of
from pergola.bundle.errors import DuplicateObject, InvalidObject
from pergola.kube.yaml import dump

DATA_KEY: Final = "data.yaml.br"
QUALITY: Final = 9
"""Brotli's maximum is 11, which takes eight times as long for a Secret that is 10 % smaller."""


class Document(NamedTuple):
    """One object as YAML, and its title for error messages."""

    title: str
    text: bytes


class Registry:
    """The objects of one ManagedResource.

    An object is captured when it is added; later modifications have no effect.
    """

    def __init__(self, *objects: JsonObject | None) -> None:
        self._objects: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.add(*objects)

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, *objects: JsonObject | None) -> None:
        """Add objects; None, for an object that is not needed, is skipped.

        Raises:
            DuplicateObject: an object of this kind, namespace and name was added before.
            InvalidObject: `apiVersion`, `kind` or the name is missing, or a value is not JSON.
        """
        for obj in objects:
            if obj is not None:
                self._add(obj)

    def serialize(self, *, quality: int = QUALITY) -> dict[str, bytes]:
        """Return all objects under one data key, compressed; large content takes seconds of CPU.

        Args:
            quality: of the compression, 0 to 11. It must never change, or Secrets change their
                names.
        """
        return {DATA_KEY: compress(self.documents(), quality=quality)}

    def documents(self) -> list[Document]:
        """Return one document for each object, ordered by file name."""
        return [
            Document(title, dump(orjson.loads(snapshot)).encode())
            for _, (title, snapshot) in sorted(self._objects.items())
        ]

    def _add(self, obj: JsonObject) -> None:
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        title = f"{gvk.kind} {key}"
        if not (gvk.version and gvk.kind and key.name):
            raise InvalidObject(
                f"object number {len(self) + 1} ({title.strip() or 'empty'}) needs apiVersion,"
                " kind and metadata.name"
            )
        # The name is included, since ':' and '_' are the same in file names.
        identity = file_name(obj), key.name
        if identity in self._objects:
            raise DuplicateObject(f"{title} is described twice in one bundle; keep one of the two")
        self._objects[identity] = title, _snapshot(obj, title)


def file_name(obj: JsonObject) -> str:
    """Return the name to sort an object by: `/v1, kind=configmap__default__greeting.yaml`."""
    gvk = GroupVersionKind.of(obj)
    kind = f"{gvk.group}/{gvk.version}, kind={gvk.kind}".lower()
    return f"{kind}__{namespace_of(obj)}__{name_of(obj).replace(':', '_')}.yaml"


def compress(documents: Iterable[Document], *, quality: int = QUALITY) -> bytes:
    """Compress the documents into one stream; the same documents yield the same bytes."""
    stream = b"---\n".join(document.text for document in documents)
    compressed: bytes = brotli.compress(stream, quality=quality)
    return compressed


def _snapshot(obj: JsonObject, title: str) -> bytes:
    try:
        return orjson.dumps(obj)
    except TypeError as error:
        raise InvalidObject(f"{title} has a value that JSON cannot represent: {error}") from None
