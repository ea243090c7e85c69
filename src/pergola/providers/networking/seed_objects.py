"""Objects of a network plugin next to its Network, such as the configuration of monitoring.

A ConfigMap records what was applied. It is written before anything else, so that a plugin that was
interrupted knows what to remove. The record only names candidates: an object is deleted if it has
the plugin's label too, and only as the object that was read.
"""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import orjson

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP
from pergola.api.object_names import name_problem
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    annotations_of,
    labels_of,
    map_at,
    metadata_of,
    name_of,
    resource_version_of,
    uid_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind
from pergola.kube.patches import same
from pergola.runtime.logging import get_logger

log = get_logger("network")

CHECKSUM: Final = "extensions.gardener.cloud/checksum"
_RECORD: Final = "objects"


class SeedObject(NamedTuple):
    """The kind and name of an object in its owner's namespace."""

    gvk: GroupVersionKind
    name: str

    @classmethod
    def of(cls, obj: JsonObject) -> "SeedObject":
        """Return the kind and name of an object."""
        return cls(GroupVersionKind.of(obj), name_of(obj))

    @classmethod
    def parse(cls, line: str) -> "SeedObject | None":
        """Read what `str` wrote; return None if the line does not name exactly one object."""
        match line.split(" "):
            case [version, kind, name] if version and kind and name_problem(name) is None:
                found = cls(GroupVersionKind.parse(version, kind), name)
                return found if str(found) == line else None
        return None

    def __str__(self) -> str:
        return f"{self.gvk.api_version} {self.gvk.kind} {self.name}"


class SeedObjects:
    """All objects of one owner in a namespace.

    Args:
        owner: the value of their origin label; part of the record's name.
    """

    def __init__(self, client: Client, namespace: str, owner: str) -> None:
        self._client = client
        self._namespace = namespace
        self._owner = owner
        self._record = Key(namespace, f"{owner}-seed-objects")

    async def apply(self, objects: Sequence[JsonObject]) -> None:
        """Apply these objects and delete the owner's others; write only what differs.

        A kind that the seed does not serve is skipped and logged, because a network must not fail
        for want of monitoring.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        desired = {SeedObject.of(obj): obj for obj in objects}
        record = await self._client.find(CONFIG_MAP, self._record)
        recorded = _recorded(record)
        if not recorded.issuperset(desired):
            await self._write_record(recorded.union(desired))
        for obj in desired.values():
            await self._apply(obj)
        gone = sorted(recorded.difference(desired))
        for left in gone:
            await self._delete(left)
        if gone or (record is not None and not desired):
            await self._write_record(desired)

    async def delete(self) -> None:
        """Delete all of them, and the record last.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        await self.apply(())

    async def _apply(self, obj: JsonObject) -> None:
        desired = self._marked(obj)
        gvk, key = GroupVersionKind.of(desired), Key.of(desired)
        try:
            live = await self._client.find(gvk, key)
            if live is None or not _has(live, desired):
                await self._client.apply(desired, manager=self._owner, force=True)
        except UnknownKind:
            log.warning("object of an unknown kind skipped", kind=str(gvk), object=str(key))

    async def _delete(self, obj: SeedObject) -> None:
        key = Key(self._namespace, obj.name)
        with suppress(NotFound, UnknownKind):
            live = await self._client.get(obj.gvk, key)
            if labels_of(live).get(marks.ORIGIN_LABEL) != self._owner:
                log.warning("recorded object of another owner left", kind=str(obj.gvk), object=key)
                return
            await self._client.delete(
                obj.gvk, key, uid=uid_of(live), resource_version=resource_version_of(live)
            )

    async def _write_record(self, objects: Iterable[SeedObject]) -> None:
        lines = sorted(map(str, objects))
        if not lines:
            with suppress(NotFound):
                await self._client.delete(CONFIG_MAP, self._record)
            return
        record: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self._record.name,
                "namespace": self._namespace,
                "labels": {marks.ORIGIN_LABEL: self._owner},
            },
            "data": {_RECORD: "\n".join(lines)},
        }
        await self._client.apply(record, manager=self._owner, force=True)

    def _marked(self, obj: JsonObject) -> JsonObject:
        """Add the namespace, the origin, and a checksum that changes when a field is removed."""
        content = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
        metadata = {
            **metadata_of(obj),
            "namespace": self._namespace,
            "labels": {**labels_of(obj), marks.ORIGIN_LABEL: self._owner},
            "annotations": {**annotations_of(obj), CHECKSUM: hashlib.sha256(content).hexdigest()},
        }
        return {**obj, "metadata": metadata}


def _has(live: JsonValue, desired: JsonValue) -> bool:
    """Return whether a live value contains a desired one.

    The server may add fields, and leave out empty ones.
    """
    if isinstance(desired, dict):
        there = live if isinstance(live, dict) else {}
        return all(_has(there.get(name), value) for name, value in desired.items())
    if isinstance(desired, list):
        items = live if isinstance(live, list) else []
        return len(items) == len(desired) and all(map(_has, items, desired))
    return desired is None or same(live, desired)


def _recorded(record: JsonObject | None) -> set[SeedObject]:
    text = map_at(record or {}, "data").get(_RECORD, "")
    return {found for line in str(text).splitlines() if (found := SeedObject.parse(line))}
