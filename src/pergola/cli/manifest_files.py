"""Manifests that commands check and compare, read from files."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject

STDIN: Final = "-"


class ManifestFileError(Exception):
    """A file lacks required objects; the text says which file, and what it must contain."""


def read_objects(path: str, text: bytes | None = None) -> "list[JsonObject]":
    """Return the objects of a file, splitting Lists; `-` is the standard input.

    Args:
        path: The path of the file, also for errors.
        text: Its content, if it was already read.

    Raises:
        ManifestFileError: the file cannot be read, or contains something that is not an object.
    """
    from pergola.kube.yaml import parse_documents

    found: list[JsonObject] = []
    for document in parse_documents(content(path) if text is None else text):
        where = f"{path}, document {document.index + 1} (line {document.line})"
        if document.error is not None:
            raise ManifestFileError(f"{where} cannot be read: {document.error}")
        if isinstance(document.value, dict):
            found += _flat(document.value)
        elif document.value is not None:
            raise ManifestFileError(f"{where} is not a Kubernetes object")
    return found


def content(path: str) -> bytes:
    """Return the content of a file; `-` is the standard input.

    Raises:
        ManifestFileError: The file cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise ManifestFileError(f"cannot read {path}: {error.strerror}") from None


def of_kind(objects: "list[JsonObject]", group: str, kind: str) -> "list[JsonObject]":
    """Return the objects of a kind, in any version."""
    from pergola.api.objects import GroupKind, GroupVersionKind

    group_kind = GroupKind(group, kind)
    return [obj for obj in objects if GroupVersionKind.of(obj).group_kind == group_kind]


def named(obj: "JsonObject") -> str:
    """Return the title of an object, such as `Shoot garden-dev/web`."""
    from pergola.api.objects import Key

    return f"{obj.get('kind') or 'something without a kind'} {Key.of(obj)}".strip()


def _flat(obj: "JsonObject") -> "Iterator[JsonObject]":
    from pergola.api.objects import maps_at

    if obj.get("kind") == "List":
        yield from maps_at(obj, "items")
    else:
        yield obj
