"""The manifests that `pergola network` reads and writes."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject


class NetworkFileError(Exception):
    """A file has unexpected content; the text names the file and the expected content."""


def read_one(path: str, gvk: "GroupVersionKind") -> "JsonObject":
    """Return the only object of a file, of the given kind; `-` is the standard input.

    Raises:
        NetworkFileError: the file cannot be read, or contains something else.
    """
    from pergola.api.objects import GroupVersionKind, name_of

    objects = _objects(path)
    desired = f"{gvk.kind} of {gvk.api_version}"
    if len(objects) != 1:
        found = ", ".join(_named(obj) for obj in objects) or "nothing"
        raise NetworkFileError(f"{path} must contain one {desired}, and contains {found}")
    if GroupVersionKind.of(objects[0]) != gvk:
        raise NetworkFileError(f"{path} contains no {desired}, but {_named(objects[0])}")
    if not name_of(objects[0]):
        raise NetworkFileError(f"{path}: metadata.name of the {gvk.kind} is missing")
    return objects[0]


def write_secretly(path: Path, obj: "JsonObject") -> None:
    """Write a manifest that only its owner can read, replacing an older one atomically."""
    from pergola.kube.yaml import dump

    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(dump(obj))
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _objects(path: str) -> "list[JsonObject]":
    from pergola.kube.yaml import parse_documents

    text = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    found: list[JsonObject] = []
    for document in parse_documents(text):
        where = f"{path}, document {document.index + 1}"
        if document.error is not None:
            raise NetworkFileError(f"{where} cannot be read: {document.error}")
        if isinstance(document.value, dict):
            found.append(document.value)
        elif document.value is not None:
            raise NetworkFileError(f"{where} is not a Kubernetes object")
    return found


def _named(obj: "JsonObject") -> str:
    from pergola.api.objects import name_of

    return f"{obj.get('kind') or 'something without a kind'} {name_of(obj)}".strip()
