"""A cache is complete after any list that the server streams."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import orjson
import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.kube.guards import Guard
from pergola.kube.transport import Transport
from pergola.kube.watch import INITIAL_EVENTS_END
from pergola.runtime.caching.cache import Cache

pytestmark = pytest.mark.looptime(start=0)

SERVED = orjson.dumps(
    {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
)


class Streaming(Transport):
    """A transport with the events of each streaming list; the last one, and other watches, stay."""

    def __init__(self, *lists: Sequence[JsonObject | bytes]) -> None:
        self._lists = list(lists)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        guard: Guard | None = None,
    ) -> bytes:
        return SERVED

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, accept: str, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._lines(self._lists.pop(0) if "sendInitialEvents" in query else [])

    async def _lines(self, events: Sequence[JsonObject | bytes]) -> AsyncIterator[bytes]:
        for event in events:
            yield event if isinstance(event, bytes) else orjson.dumps(event)
        if not (events and self._lists):
            await asyncio.Event().wait()


def event(kind: str, name: str, version: int, text: str = "") -> JsonObject:
    metadata = {"name": name, "namespace": "ns", "resourceVersion": str(version)}
    return {"type": kind, "object": {"metadata": metadata, "data": {"text": text}}}


def end_of_list(version: int) -> JsonObject:
    metadata = {"resourceVersion": str(version), "annotations": {INITIAL_EVENTS_END: "true"}}
    return {"type": "BOOKMARK", "object": {"metadata": metadata}}


def keep(obj: JsonObject) -> str:
    text: str = obj["data"]["text"]
    return text


async def cached(transport: Streaming) -> dict[str, str]:
    """Return the content of a cache after all lists."""
    cache = Cache(Client(transport), CONFIG_MAP, keep)
    task = asyncio.create_task(cache.run())
    await asyncio.sleep(60)
    task.cancel()
    assert cache.is_synced
    return {key.name: text for key, text in cache.items()}


async def test_changes_between_the_first_object_and_the_end_of_the_list_are_applied() -> None:
    # A watch cache that is behind sends its objects first, and then what happened since.
    transport = Streaming(
        [
            event("ADDED", "deleted", 1, "old"),
            event("ADDED", "changed", 2, "old"),
            event("MODIFIED", "changed", 3, "new"),
            event("DELETED", "deleted", 4, "old"),
            event("ADDED", "added", 5, "new"),
            end_of_list(5),
        ]
    )
    assert await cached(transport) == {"changed": "new", "added": "new"}


async def test_everything_is_listed_again_after_resource_versions_went_back() -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
    restored = [
        event("ADDED", "a", 10, "restored"),
        event("ADDED", "b", 11, "restored"),
        end_of_list(20),
        event("ADDED", "c", 21, "new"),
    ]
    transport = Streaming(
        [event("ADDED", "a", 90, "lost"), end_of_list(100), gone], restored, restored
    )
    content = await cached(transport)
    assert content == {"a": "restored", "b": "restored", "c": "new"}


async def test_a_line_that_is_not_json_ends_the_watch_and_not_the_cache() -> None:
    complete = [event("ADDED", "a", 1, "x"), event("ADDED", "b", 2, "x"), end_of_list(2)]
    transport = Streaming([event("ADDED", "a", 1, "x"), b'{"type": "AD'], complete)
    assert await cached(transport) == {"a": "x", "b": "x"}
