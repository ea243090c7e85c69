"""Objects of a network plugin beside its Network, such as the configuration of monitoring.

A ConfigMap records what was applied, and is written before anything else, so that whoever is
interrupted still knows what to remove when it is not wanted any more.
"""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import orjson

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP
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
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind
from pergola.kube.patches import same
from pergola.runtime.logging import get_logger

log = get_logger("network")

CHECKSUM: Final = "extensions.gardener.cloud/checksum"
_RECORD: Final = "objects"


class SeedObject(NamedTuple):
    """Which object it is, in its owner's namespace."""

    gvk: GroupVersionKind
    name: str

    @classmethod
    def of(cls, obj: JsonObject) -> "SeedObject":
        """Which object this is."""
        return cls(GroupVersionKind.of(obj), name_of(obj))

    @classmethod
    def parse(cls, line: str) -> "SeedObject | None":
        """Reads what `str` wrote; None if somebody else wrote it."""
        match line.split(" "):
            case [version, kind, name]:
                return cls(GroupVersionKind.parse(version, kind), name)
        return None

    def __str__(self) -> str:
        return f"{self.gvk.api_version} {self.gvk.kind} {self.name}"


class SeedObjects:
    """All objects of one owner in a namespace.

    Args:
        owner: what they are labelled with as their origin; names the record as well.
    """

    def __init__(self, client: Client, namespace: str, owner: str) -> None:
        self._client = client
        self._namespace = namespace
        self._owner = owner
        self._record = Key(namespace, f"{owner}-seed-objects")

    async def apply(self, objects: Sequence[JsonObject]) -> None:
        """Makes these and no others be there; writes only what differs.

        A kind that the seed does not serve is passed over, with a line in the log: no network
        shall fail because nobody monitors it.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        wanted = {SeedObject.of(obj): obj for obj in objects}
        recorded = await self._recorded()
        if not recorded.issuperset(wanted):
            await self._write_record(recorded.union(wanted))
        for obj in wanted.values():
            await self._apply(obj)
        if gone := recorded.difference(wanted):
            await self._delete(gone)
            await self._write_record(wanted)

    async def delete(self) -> None:
        """Removes all of them, and the record at last.

        Raises:
            KubeError: the API server refused, or did not answer.
        """
        await self.apply(())

    async def _apply(self, obj: JsonObject) -> None:
        wanted = self._marked(obj)
        gvk, key = GroupVersionKind.of(wanted), Key.of(wanted)
        try:
            live = await self._live(gvk, key)
            if live is None or not _has(live, wanted):
                await self._client.apply(wanted, manager=self._owner, force=True)
        except UnknownKind:
            log.warning("object of an unknown kind passed over", kind=str(gvk), object=str(key))

    async def _delete(self, objects: Iterable[SeedObject]) -> None:
        for gvk, name in sorted(objects):
            with suppress(NotFound, UnknownKind):
                await self._client.delete(gvk, Key(self._namespace, name))

    async def _recorded(self) -> set[SeedObject]:
        record = await self._live(CONFIG_MAP, self._record)
        text = map_at(record or {}, "data").get(_RECORD, "")
        return {found for line in str(text).splitlines() if (found := SeedObject.parse(line))}

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
        """With its namespace and origin, and a checksum that tells of fields that are gone."""
        content = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
        metadata = {
            **metadata_of(obj),
            "namespace": self._namespace,
            "labels": {**labels_of(obj), marks.ORIGIN_LABEL: self._owner},
            "annotations": {**annotations_of(obj), CHECKSUM: hashlib.sha256(content).hexdigest()},
        }
        return {**obj, "metadata": metadata}

    async def _live(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        try:
            return await self._client.get(gvk, key)
        except NotFound:
            return None


def _has(live: JsonValue, wanted: JsonValue) -> bool:
    """Whether everything wanted is there; the server may add fields, and leave out empty ones."""
    if isinstance(wanted, dict):
        there = live if isinstance(live, dict) else {}
        return all(_has(there.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list):
        items = live if isinstance(live, list) else []
        return len(items) == len(wanted) and all(map(_has, items, wanted))
    return wanted is None or same(live, wanted)
