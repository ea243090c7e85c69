"""Decoding of answers, which may come from a proxy instead of the API server.

An answer that does not fit its question says nothing about the cluster: taken for an object, a list
or a change, it would mean that something was deleted.
"""

from typing import Final, Literal, NamedTuple, TypeAlias, cast

import orjson

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    map_at,
    metadata_of,
    name_of,
    namespace_of,
    uid_of,
)
from pergola.kube.errors import WrongAnswer, api_error

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

_META: Final = "meta.k8s.io/"
_METADATA: Final = "PartialObjectMetadata"
_LONGEST_VERSION: Final = 256
_NAME_SELECTOR: Final = "metadata.name="


class Question(NamedTuple):
    """The stored objects that a request asks for.

    Attributes:
        path: of the request, for errors.
        gvk: their kind.
        namespaced: whether they have a namespace.
        namespace: their namespace; None for any.
        name: their name; None for any.
        metadata_only: whether their metadata is enough.
    """

    path: str
    gvk: GroupVersionKind
    namespaced: bool
    namespace: str | None = None
    name: str | None = None
    metadata_only: bool = False

    def check(self, obj: JsonObject) -> None:
        """Check that an answer is one of the objects.

        Raises:
            WrongAnswer: it is something else.
        """
        self._check_kind(obj)
        self._check_identity(obj)

    def check_list(self, answer: JsonObject) -> None:
        """Check that an answer is a list of the objects, which may be empty.

        Objects without uid and resourceVersion are accepted in a list without resourceVersion:
        metrics, for instance, are not stored.

        Raises:
            WrongAnswer: it is something else.
        """
        kind = answer.get("kind")
        if kind in ("Status", "List"):
            raise self._wrong(f"is {_described(answer)}, not {self.gvk.kind} objects")
        # A definition may give its lists any name.
        self._check_kind(answer, str(kind or f"{self.gvk.kind}List"), f"{_METADATA}List")
        items, metadata = answer.get("items", {}), answer.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise self._wrong("has no metadata")
        version, rest = metadata.get("resourceVersion"), metadata.get("continue")
        if not isinstance(rest, str | None) or (version and not is_version(version)):
            raise self._wrong("has no valid metadata")
        for item in () if items is None else items if isinstance(items, list) else (None,):
            if not isinstance(item, dict):
                raise self._wrong("has no list of items")
            if item.get("kind") not in (None, ""):  # built-in kinds omit it
                self._check_kind(item)
            self._check_identity(item, stored=bool(version))
            if version:
                self.check_version(item)

    def check_version(self, obj: JsonObject) -> None:
        """Check that an object has a resourceVersion from which to watch.

        Raises:
            WrongAnswer: it has none.
        """
        if not is_version(metadata_of(obj).get("resourceVersion")):
            raise self._wrong("has no valid metadata.resourceVersion")

    def check_deletion(self, answer: JsonObject) -> None:
        """Check that an answer confirms the deletion of the object.

        Raises:
            WrongAnswer: it does not.
        """
        if answer.get("kind") != "Status":
            self.check(answer)
            return
        confirmed = answer.get("apiVersion") == "v1" and answer.get("status") == "Success"
        if not confirmed or map_at(answer, "details").get("name") != self.name:
            raise self._wrong(f"does not confirm the deletion of {self.gvk.kind} {self.name}")

    def event(self, line: bytes) -> tuple[EventType, JsonObject]:
        """Return the type and object of a line of a watch.

        Raises:
            ApiError: the server ends the watch.
            WrongAnswer: the line is not an event about one of the objects.
        """
        event = decoded(line, self.path)
        kind, obj = event.get("type"), event.get("object")
        if not isinstance(obj, dict):
            raise self._wrong("is an event without an object")
        if kind == "ERROR":
            code = obj.get("code", 500)
            if obj.get("kind") != "Status" or type(code) is not int:
                raise self._wrong("is an error that is not a Status")
            raise api_error(code, obj)
        if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            raise self._wrong("is not an event")
        self._check_kind(obj)
        if kind != "BOOKMARK":
            self._check_identity(obj)
        self.check_version(obj)
        obj["apiVersion"], obj["kind"] = self.gvk.api_version, self.gvk.kind
        return cast("EventType", kind), obj

    def _check_identity(self, obj: JsonObject, *, stored: bool = True) -> None:
        namespace, name = namespace_of(obj), name_of(obj)
        if not name or self.name not in (None, name):
            raise self._wrong(
                f"is {self.gvk.kind} {name[:100]!r}, not {self.name or 'with a name'}"
            )
        if bool(namespace) is not self.namespaced or self.namespace not in (None, namespace):
            expected = self.namespace or ("any" if self.namespaced else "none")
            raise self._wrong(
                f"is {self.gvk.kind} {name} in namespace {namespace[:100]!r}, not {expected}"
            )
        if stored and not uid_of(obj):
            raise self._wrong("has no metadata.uid")

    def _check_kind(
        self, answer: JsonObject, kind: str = "", metadata_kind: str = _METADATA
    ) -> None:
        expected, version = kind or self.gvk.kind, answer.get("apiVersion")
        is_metadata = answer.get("kind") == metadata_kind and str(version).startswith(_META)
        is_full = answer.get("kind") == expected and version == self.gvk.api_version
        if not is_full and not (is_metadata and self.metadata_only):
            raise self._wrong(f"is {_described(answer)}, not {self.gvk.api_version} {expected}")

    def _wrong(self, problem: str) -> WrongAnswer:
        return WrongAnswer(f"the answer for {self.path} {problem}")


def decoded(answer: bytes, path: str) -> JsonObject:
    """Return the object in a successful answer.

    Args:
        path: of the request, for the error.

    Raises:
        WrongAnswer: it is not a JSON object.
    """
    try:
        obj: JsonValue = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise WrongAnswer(f"the answer for {path} is not valid JSON: {error}") from error
    if not isinstance(obj, dict):
        raise WrongAnswer(f"the answer for {path} is not an object")
    return obj


def check_posted(answer: JsonObject, body: JsonObject, path: str) -> None:
    """Check that the answer for a request that is not stored is of the kind of the request.

    Raises:
        WrongAnswer: it is something else.
    """
    expected = GroupVersionKind.of(body)
    if expected.kind and GroupVersionKind.of(answer) != expected:
        raise WrongAnswer(f"the answer for {path} is {_described(answer)}, not {expected}")


def served_kinds(answer: JsonObject, group_version: str, path: str) -> list[JsonObject]:
    """Return the entries of the kinds of a group and version.

    Raises:
        WrongAnswer: it is something other than a list of these.
    """
    kinds = answer.get("resources")
    if answer.get("kind") != "APIResourceList" or answer.get("groupVersion") != group_version:
        raise WrongAnswer(
            f"the answer for {path} is {_described(answer)}, not the kinds of {group_version}"
        )
    if kinds is None:
        return []
    if not isinstance(kinds, list) or not all(map(_is_kind, kinds)):
        raise WrongAnswer(f"the answer for {path} has no list of resources")
    return kinds


def served_versions(answer: JsonObject, path: str) -> set[str]:
    """Return the groups with their versions in the answer for `/apis` or `/api`.

    Raises:
        WrongAnswer: it is something else.
    """
    if answer.get("kind") == "APIVersions" and isinstance(answer.get("versions"), list):
        return {str(version) for version in answer["versions"]}
    groups = answer.get("groups")
    if answer.get("kind") != "APIGroupList" or not isinstance(groups, list):
        raise WrongAnswer(f"the answer for {path} is {_described(answer)}, not the served groups")
    versions = [group.get("versions") if isinstance(group, dict) else None for group in groups]
    return {
        str(version.get("groupVersion"))
        for listed in versions
        if isinstance(listed, list)
        for version in listed
        if isinstance(version, dict)
    }


def is_version(value: object) -> bool:
    """Return whether a value can be a resourceVersion: a short text of visible characters."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= _LONGEST_VERSION
        and value.isascii()
        and value.isprintable()
        and " " not in value
    )


def name_in(fields: str | None) -> str | None:
    """Return the name that a field selector selects; None if it selects otherwise."""
    if fields is None or not fields.startswith(_NAME_SELECTOR) or {",", "\\"} & {*fields}:
        return None
    return fields.removeprefix(_NAME_SELECTOR) or None


def number_of(resource_version: str) -> int:
    """Return a resource version as a number; 0, which is never compared, if it is not numeric."""
    is_number = is_version(resource_version) and resource_version.isdigit()
    return int(resource_version) if is_number else 0


def _is_kind(served: object) -> bool:
    return (
        isinstance(served, dict)
        and isinstance(served.get("name"), str)
        and isinstance(served.get("kind"), str)
        and bool(served["name"] and served["kind"])
        and isinstance(served.get("namespaced"), bool | None)
    )


def _described(answer: JsonObject) -> str:
    named = (answer.get("apiVersion"), answer.get("kind"))
    return " ".join(str(part)[:100] for part in named if part) or "without a kind"
