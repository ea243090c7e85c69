"""Wrong answers of a broken proxy to any question, made from the right one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import orjson

from pergola.api.objects import JsonObject, JsonValue

Change: TypeAlias = Callable[[JsonObject], JsonValue]

_LIST: Final[JsonObject] = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []}
_STATUS: Final[JsonObject] = {"apiVersion": "v1", "kind": "Status", "status": "Success"}
_FAILURE: Final[JsonObject] = {**_STATUS, "status": "Failure", "code": 500, "message": "broken"}
_NOT_OBJECTS: Final[tuple[Any, ...]] = (None, [], "x", {}, 5)
_PAGE: Final = b"<html><body>Please sign in</body></html>"


@dataclass(frozen=True)
class Wrong:
    """A wrong answer.

    Attributes:
        name: a description.
        body: returns it for the right answer; None if they do not differ.
        breaks: whether the connection ends in the middle of it.
        may_be_right: whether a list or watch may contain it, so that no client could notice.
    """

    name: str
    body: Callable[[bytes], bytes | None]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks: bool = False
    may_be_right: bool = False


def _event(kind: str, obj: Any) -> JsonValue:
    return {"type": kind, "object": obj}


def _bodies() -> Iterator[tuple[str, bytes]]:
    yield "nothing", b""
    yield "a page", _PAGE
    yield "no UTF-8", b'{"kind": "\xff"}'
    yield "NUL", b'{"kind": "\x00"}'
    yield "deeply nested", b"[" * 5000 + b"]" * 5000
    yield "half an object", b'{"type": "ADDED", "object": {"kind": '
    error = {"kind": "Status", "code": [], "reason": [], "message": {}}
    values: list[JsonValue] = [
        *(None, [], {}, 5, "x", True, _LIST, _STATUS, _FAILURE),
        {"error": "bad gateway"},
        {"type": "ADDED"},
        *[_event("ADDED", each) for each in _NOT_OBJECTS],
        *[_event("ERROR", each) for each in (*_NOT_OBJECTS, {"code": "x"}, error)],
        {"type": "BOOKMARK", "object": {}},
        {"type": [], "object": {}},
    ]
    for value in values:
        text = orjson.dumps(value)
        yield text.decode()[:70], text


def _metadata(name: str, value: JsonValue) -> Change:
    def change(obj: JsonObject) -> JsonValue:
        metadata = dict(obj.get("metadata") or {})
        if "name" not in metadata:
            return obj  # a Status, for instance, has no identity
        if value is None:
            metadata.pop(name, None)
        else:
            metadata[name] = value
        return {**obj, "metadata": metadata}

    return change


def _of_stored(obj: JsonObject, wrong: JsonObject) -> JsonObject:
    return wrong if "name" in (obj.get("metadata") or {}) else obj


_CHANGES: Final[Mapping[str, Change]] = {
    "another kind": lambda obj: {**obj, "kind": "Other"},
    "another version": lambda obj: {**obj, "apiVersion": "other.example.org/v7"},
    "kind a number": lambda obj: {**obj, "kind": 5},
    "kind a list": lambda obj: {**obj, "kind": [], "apiVersion": {}},
    "metadata null": lambda obj: _of_stored(obj, {**obj, "metadata": None}),
    "metadata a list": lambda obj: _of_stored(obj, {**obj, "metadata": [1]}),
    "metadata a string": lambda obj: _of_stored(obj, {**obj, "metadata": "x"}),
    "only metadata": lambda obj: _of_stored(
        obj,
        {
            "apiVersion": "meta.k8s.io/v1",
            "kind": "PartialObjectMetadata",
            "metadata": obj.get("metadata"),
        },
    ),
    "in a list": lambda obj: [obj],
    "without a name": _metadata("name", None),
    "another name": _metadata("name", "other"),
    "name a number": _metadata("name", 5),
    "another namespace": _metadata("namespace", "other"),
    "namespace a list": _metadata("namespace", ["x"]),
    "without a uid": _metadata("uid", None),
    "uid a number": _metadata("uid", 5),
}
_POSSIBLE: Final = ("another name", "another namespace")
_VERSIONS: Final[Mapping[str, Change]] = {
    "without a version": _metadata("resourceVersion", None),
    "version a number": _metadata("resourceVersion", 5),
    "version of 6000 digits": _metadata("resourceVersion", "7" * 6000),
    "version ²": _metadata("resourceVersion", "²"),
}


def _with(field: str, value: JsonValue, needs: str) -> Change:
    return lambda answer: {**answer, field: value} if needs in answer else answer


_LISTS: Final[Mapping[str, Change]] = {
    "items a map": _with("items", {}, "items"),
    "no items": lambda answer: {k: v for k, v in answer.items() if k != "items"},
    "items null and numbers": _with("items", [None, 5], "items"),
    "continue a number": _with("metadata", {"continue": 5}, "items"),
    "list version a number": _with("metadata", {"resourceVersion": 5}, "items"),
    "resources a map": _with("resources", {}, "resources"),
    "resources without names": _with("resources", [{}, {"name": 5}], "resources"),
}


def _changed(change: Change, part: str) -> Callable[[bytes], bytes | None]:
    """Return a function that changes what an answer is about: its objects or itself."""

    def body(right: bytes) -> bytes | None:
        answer: Any = orjson.loads(right)
        if part == "list":
            wrong: JsonValue = change(answer) if {"items", "resources"} & answer.keys() else answer
        elif isinstance(answer.get("object"), dict):
            is_bookmark = answer.get("type") == "BOOKMARK"
            wrong = answer if is_bookmark else {**answer, "object": change(answer["object"])}
        elif isinstance(answer.get("items"), list):
            wrong = {**answer, "items": [change(item) for item in answer["items"]]}
        elif part == "version":
            wrong = answer  # an answer that is not a list may have any version
        else:
            wrong = change(answer)
        return None if wrong == answer else orjson.dumps(wrong)

    return body


def _always(text: bytes) -> Callable[[bytes], bytes]:
    return lambda _: text


WRONG_ANSWERS: Final[tuple[Wrong, ...]] = (
    *(Wrong(name, _always(text)) for name, text in _bodies()),
    *(
        Wrong(name, _changed(change, "object"), may_be_right=name in _POSSIBLE)
        for name, change in _CHANGES.items()
    ),
    *(Wrong(name, _changed(change, "version")) for name, change in _VERSIONS.items()),
    *(Wrong(name, _changed(change, "list")) for name, change in _LISTS.items()),
    Wrong("broken off", lambda right: right[: len(right) // 2], breaks=True),
    Wrong("wrong encoding", lambda right: right, headers={"Content-Encoding": "gzip"}),
    Wrong("204", _always(b""), 204),
    Wrong("302", _always(b""), 302, {"Location": "/elsewhere"}),
    Wrong("400", _always(_PAGE), 400),
    Wrong("404, a page", _always(_PAGE), 404),
    Wrong("404, as Go", _always(b"404 page not found\n"), 404),
    Wrong("404, a Status", _always(orjson.dumps({**_FAILURE, "code": 404})), 404),
    Wrong("409", _always(_PAGE), 409),
    Wrong("410", _always(_PAGE), 410),
    Wrong("429", _always(_PAGE), 429, {"Retry-After": "1"}),
    Wrong("500, details a list", _always(orjson.dumps({**_FAILURE, "details": [1]})), 500),
    Wrong("502", _always(_PAGE), 502, {"Retry-After": "9" * 5000}),
    Wrong("503", _always(_PAGE), 503, {"Retry-After": "1"}),
)
"""Answers of all shapes that no right answer has."""
