"""Decoding of answers, which may come from a proxy instead of the API server.

An answer that does not fit its question says nothing about the cluster: taken for an object or a
list, it would mean that everything else was deleted.
"""

from typing import Final

import orjson

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    name_of,
    namespace_of,
    uid_of,
)
from pergola.kube.errors import Unreachable

_META: Final = "meta.k8s.io/"
_METADATA: Final = "PartialObjectMetadata"


def decoded(answer: bytes, path: str) -> JsonObject:
    """Return the object in a successful answer.

    Args:
        path: of the request, for the error.

    Raises:
        Unreachable: it is not a JSON object.
    """
    try:
        obj: JsonValue = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"the answer for {path} is not valid JSON: {error}") from error
    if not isinstance(obj, dict):
        raise Unreachable(f"the answer for {path} is not an object")
    return obj


def check_object(answer: JsonObject, gvk: GroupVersionKind, key: Key, path: str) -> None:
    """Check that an answer is the stored object that was requested.

    Raises:
        Unreachable: it is something else.
    """
    _check_kind(answer, gvk, gvk.kind, _METADATA, path)
    found = Key(namespace_of(answer), name_of(answer))
    if found != key:
        raise Unreachable(f"the answer for {path} is {gvk.kind} {found}, not {key}")
    if not uid_of(answer):
        raise Unreachable(f"the answer for {path} has no metadata.uid")


def check_list(answer: JsonObject, gvk: GroupVersionKind, path: str) -> None:
    """Check that an answer is a list of a kind, which may be empty.

    Raises:
        Unreachable: it is something else.
    """
    if answer.get("kind") in ("Status", "List"):
        raise Unreachable(f"the answer for {path} is {_described(answer)}, not {gvk.kind} objects")
    # A definition may give its lists any name.
    _check_kind(answer, gvk, str(answer.get("kind") or f"{gvk.kind}List"), f"{_METADATA}List", path)
    items = answer.get("items", {})
    if items is not None and not (
        isinstance(items, list) and all(isinstance(item, dict) for item in items)
    ):
        raise Unreachable(f"the answer for {path} has no list of items")
    if not isinstance(answer.get("metadata") or {}, dict):
        raise Unreachable(f"the answer for {path} has no metadata")


def _check_kind(
    answer: JsonObject, gvk: GroupVersionKind, kind: str, metadata_kind: str, path: str
) -> None:
    found, version = answer.get("kind"), str(answer.get("apiVersion") or "")
    if found == metadata_kind and version.startswith(_META):
        return
    if found != kind or version != gvk.api_version:
        raise Unreachable(
            f"the answer for {path} is {_described(answer)}, not {gvk.api_version} {kind}"
        )


def _described(answer: JsonObject) -> str:
    named = (answer.get("apiVersion"), answer.get("kind"))
    return " ".join(str(part)[:100] for part in named if part) or "without a kind"
