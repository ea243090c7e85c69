"""A cluster in memory, with the rules of an API server about writes that both sides depend on."""

# ruff: noqa: D102 - the methods of a client

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, cast

import jsonpatch
import orjson

from conformance.documents import Documents
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    finalizers_of,
    map_at,
    metadata_of,
    resource_version_of,
    uid_of,
    without_empty,
)
from pergola.kube.client import Client
from pergola.kube.discovery import Resource
from pergola.kube.errors import AlreadyExists, Conflict, Invalid
from pergola.kube.patches import apply_merge_patch
from pergola.resource_manager.target.content import content_of

CLUSTER_SCOPED: Final = frozenset(
    {
        "ClusterRole",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ValidatingWebhookConfiguration",
    }
)
"""The kinds without namespace that questions contain."""
_FROZEN: Final = frozenset({"ConfigMap", "Secret"})


class Cluster(Documents):
    """A cluster that can be written.

    Args:
        refused: the names of objects whose content cannot be changed.
        answers: functions that answer what is not stored, such as reviews, by kind or subresource.
        now: when objects are created and deleted.
        uids: the beginning of uids, which differ between clusters.

    Attributes:
        propagations: how objects were deleted, by name.
    """

    def __init__(
        self,
        documents: Iterable[JsonObject],
        *,
        refused: Collection[str] = (),
        answers: Mapping[str, Callable[[JsonObject], JsonObject]] | None = None,
        now: str = "2026-01-01T12:00:00Z",
        uids: str = "",
    ) -> None:
        super().__init__([copy.deepcopy(each) for each in documents])
        self.propagations: dict[str, str] = {}
        self.discovery = self
        self._refused = refused
        self._answers = answers or {}
        self._now = now
        self._uids = uids
        self._version = 1
        for document in self.documents:
            self._stamp(document)

    @property
    def client(self) -> Client:
        """The client of this cluster."""
        return cast("Client", self)

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        return self.known(gvk)

    def known(self, gvk: GroupVersionKind) -> Resource:
        """Return how a kind is served; all kinds are."""
        return Resource(gvk, f"{gvk.kind.lower()}s", gvk.kind not in CLUSTER_SCOPED)

    async def find(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject | None:
        return copy.deepcopy(await super().find(gvk, self._key(gvk, key)))

    async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        del dry_run
        answer = self._answers.get(str(obj.get("kind")))
        if answer is not None:
            return answer(obj)
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        if await self.find(gvk, key) is not None:
            raise AlreadyExists(409, _status("AlreadyExists", key))
        stored = copy.deepcopy(obj)
        self._stamp(stored)
        self.documents.append(stored)
        return copy.deepcopy(stored)

    async def create_subresource(
        self, gvk: GroupVersionKind, key: Key, subresource: str, body: JsonObject
    ) -> JsonObject:
        await self.get(gvk, key)
        return self._answers[subresource](body)

    async def update(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        live = await self.get(gvk, key)
        if resource_version_of(obj) not in ("", resource_version_of(live)):
            raise Conflict(409, _status("Conflict", key))
        if not subresource:
            self._check(live, obj)
        if subresource == "status":
            obj = {**live, "status": obj.get("status")}
        return self._store(gvk, key, copy.deepcopy(obj))

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
    ) -> JsonObject:
        del subresource
        live = await self.get(gvk, key)
        if not isinstance(body, dict):
            return self._store(gvk, key, jsonpatch.apply_patch(live, [*body]))
        version = map_at(body, "metadata").get("resourceVersion")
        if version not in (None, resource_version_of(live)):
            raise Conflict(409, _status("Conflict", key))
        # A caller may change the patch afterwards.
        return self._store(gvk, key, apply_merge_patch(live, orjson.loads(orjson.dumps(body))))

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
    ) -> bool:
        live = await self.get(gvk, key)
        if uid not in ("", uid_of(live)) or resource_version not in ("", resource_version_of(live)):
            raise Conflict(409, _status("Conflict", key))
        if propagation:
            self.propagations[key.name] = propagation
        if finalizers_of(live):
            metadata = {"deletionTimestamp": self._now, **metadata_of(live)}
            self._store(gvk, key, {**live, "metadata": metadata})
            return False
        self._drop(gvk, key)
        return True

    def _check(self, live: JsonObject, obj: JsonObject) -> None:
        if _content(live) == _content(obj):
            return
        if Key.of(obj).name in self._refused:
            raise _invalid("FieldValueInvalid", "field is immutable")
        if obj.get("kind") in _FROZEN and live.get("immutable"):
            raise _invalid("FieldValueForbidden", "field is immutable when `immutable` is set")

    def _store(self, gvk: GroupVersionKind, key: Key, obj: JsonObject) -> JsonObject:
        self._drop(gvk, key)
        is_gone = metadata_of(obj).get("deletionTimestamp") and not finalizers_of(obj)
        if not is_gone:
            obj["metadata"].pop("resourceVersion", None)
            self._stamp(obj)
            self.documents.append(obj)
        return copy.deepcopy(obj)

    def _drop(self, gvk: GroupVersionKind, key: Key) -> None:
        key = self._key(gvk, key)
        self.documents[:] = [
            document
            for document in self.documents
            if GroupVersionKind.of(document).group_kind != gvk.group_kind or Key.of(document) != key
        ]

    def _stamp(self, obj: JsonObject) -> None:
        self._version += 1
        obj["metadata"].setdefault("resourceVersion", str(self._version))
        obj["metadata"].setdefault("uid", f"{self._uids}{self._version}")

    @staticmethod
    def _key(gvk: GroupVersionKind, key: Key) -> Key:
        return Key("", key.name) if gvk.kind in CLUSTER_SCOPED else key


def _content(obj: JsonObject) -> JsonValue:
    return without_empty(content_of(obj))


def _invalid(reason: str, message: str) -> Invalid:
    details = {"causes": [{"reason": reason, "message": message}]}
    return Invalid(422, {"reason": "Invalid", "message": message, "details": details})


def _status(reason: str, key: Key) -> JsonObject:
    return {"reason": reason, "message": f"{key}: {reason}"}
