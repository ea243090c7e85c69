"""Check that replicas that share ManagedResources write only to objects assigned to them.

The resource versions of one API server are totally ordered. So each write can be compared, without
any clock, with the assignment of its ManagedResource at the version that the write created.
"""

import asyncio
import bisect
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from pergola.api.kinds import CONFIG_MAP, LEASE, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    labels_of,
    name_of,
    resource_version_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.watch import watch
from pergola.runtime.process.sharding.ring import RING_LABEL, Share
from pergola.testing.waiting import PATIENCE
from tests.support.recording_proxy import Write

_WATCH_SECONDS: Final = 3600


@dataclass
class History:
    """The assignments of ManagedResources and the deletions of ConfigMaps in a namespace.

    The ConfigMaps of a ManagedResource are named after it: `demo.first`, `demo.second`.

    Attributes:
        assigned: the versions at which a ManagedResource changed, each with its shard.
        deleted: the version at which a ConfigMap was deleted.
        newest: the version up to which everything was seen, by kind.
        data: the ConfigMaps as they are now.
    """

    share: Share
    assigned: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    data: dict[str, JsonObject] = field(default_factory=dict)
    _seen: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def recorded(self, client: Client, namespace: str) -> AsyncGenerator[None]:
        """Record while the block lasts."""
        kinds = (MANAGED_RESOURCE, CONFIG_MAP)
        tasks = [asyncio.ensure_future(self._follow(client, gvk, namespace)) for gvk in kinds]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until the recorded history is as expected."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._seen.clear()
                await self._seen.wait()

    async def complete(self, newest: JsonObject) -> None:
        """Wait until the history has this version of an object, and all before it."""
        version = int(resource_version_of(newest))
        await self.until(lambda: self.newest.get(newest["kind"], 0) >= version)

    def current(self) -> set[str]:
        """Return the shards that have ManagedResources now."""
        return {states[-1][1] for states in self.assigned.values()}

    async def _follow(self, client: Client, gvk: GroupVersionKind, namespace: str) -> None:
        resource = await client.resource(gvk)
        async for event in watch(
            client, resource, namespace, initial_events=True, timeout_seconds=_WATCH_SECONDS
        ):
            if event.type == "OPENED":
                continue
            version = int(resource_version_of(event.object))
            if event.type != "BOOKMARK":
                self._observe(gvk, event.object, version, gone=event.type == "DELETED")
            self.newest[gvk.kind] = version
            self._seen.set()

    def _observe(self, gvk: GroupVersionKind, obj: JsonObject, version: int, *, gone: bool) -> None:
        if gvk == MANAGED_RESOURCE:
            shard = labels_of(obj).get(self.share.shard_label, "")
            self.assigned.setdefault(name_of(obj), []).append((version, shard))
        elif gone:
            self.deleted[name_of(obj)] = version
            self.data.pop(name_of(obj), None)
        else:
            self.data[name_of(obj)] = obj.get("data") or {}

    def shards(self, resource: str, version: int) -> set[str]:
        """Return the shards of a ManagedResource right before and right after a version."""
        states = self.assigned.get(resource, [])
        before = bisect.bisect_left(states, (version, ""))
        after = bisect.bisect_left(states, (version + 1, ""))
        return {shard for _, shard in states[max(before - 1, 0) : after]}

    def names(self, writes: Iterable[Write]) -> dict[str, str]:
        """Return the shard that each client is, by the Lease that it wrote."""
        return {w.holder: name_of(w.answer) for w in writes if _is_shard_lease(w)}

    def violations(self, writes: Iterable[Write]) -> list[str]:
        """Return the writes of replicas to objects that were not theirs, as text."""
        writes = list(writes)
        found = list(self._misplaced(writes, self.names(writes)))
        leaders = [holder for holder, _ in groupby(w.holder for w in writes if _is(w, SECRET))]
        if len(leaders) != len(set(leaders)):
            found.append(f"Secrets were written in turns by {leaders}")
        return found

    def _misplaced(self, writes: Iterable[Write], shards: dict[str, str]) -> Iterable[str]:
        for write in writes:
            if not (_is(write, MANAGED_RESOURCE) or _is(write, CONFIG_MAP)):
                continue
            name = write.name
            version = self.deleted.get(name, 0)
            with suppress(ValueError):
                version = int(resource_version_of(write.answer))
            allowed = self.shards(name.partition(".")[0], version)
            if shards.get(write.holder) not in allowed:
                yield f"{write.method} {name} at {version} by {write.holder}, not {allowed}"


def _is_shard_lease(write: Write) -> bool:
    return _is(write, LEASE) and RING_LABEL in labels_of(write.answer)


def _is(write: Write, gvk: GroupVersionKind) -> bool:
    return f"/{gvk.kind.lower()}s" in write.path
