"""A cache is complete after any list that the server streams."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import orjson
import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, api_error
from pergola.kube.guards import Guard
from pergola.kube.transport import Transport
from pergola.kube.watch import INITIAL_EVENTS_END
from pergola.runtime.caching.cache import Cache, Change
from tests.support.wrong_answers import WRONG_ANSWERS

pytestmark = pytest.mark.looptime(start=0)

SERVED = orjson.dumps(
    {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}],
    }
)


CONFIG_MAPS: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}


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
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": name,
        "resourceVersion": str(version),
    }
    return {"type": kind, "object": {**CONFIG_MAPS, "metadata": metadata, "data": {"text": text}}}


def end_of_list(version: int) -> JsonObject:
    metadata = {"resourceVersion": str(version), "annotations": {INITIAL_EVENTS_END: "true"}}
    return {"type": "BOOKMARK", "object": {**CONFIG_MAPS, "metadata": metadata}}


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


class Refusing(Streaming):
    """A transport that refuses watches with an error, and records when they came."""

    def __init__(self, error: ApiError) -> None:
        self._error = error
        self.asked: list[float] = []

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, accept: str, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.asked.append(asyncio.get_running_loop().time())
        if self.asked:
            raise self._error
        yield self._lines([])


@pytest.mark.parametrize(
    ("code", "asked", "waited"), [(429, 20, 20), (503, 20, 20), (429, 3600, 30)]
)
async def test_a_refused_watch_waits_as_long_as_the_server_asks(
    code: int, asked: int, waited: int
) -> None:
    transport = Refusing(api_error(code, {"details": {"retryAfterSeconds": asked}}))
    task = asyncio.create_task(Cache(Client(transport), CONFIG_MAP, keep).run())
    await asyncio.sleep(100)
    task.cancel()
    assert transport.asked == [pause * waited for pause in range(len(transport.asked))]


RIGHT_LINE = orjson.dumps(event("MODIFIED", "a", 3, "x"))
WRONG_LINES = [
    pytest.param(line, id=wrong.name)
    for wrong in WRONG_ANSWERS
    if wrong.status == 200 and not wrong.headers
    if not wrong.may_be_right
    if (line := wrong.body(RIGHT_LINE)) is not None
]


@pytest.mark.parametrize("line", WRONG_LINES)
@pytest.mark.parametrize("moment", ["in the list", "after the list"])
async def test_a_wrong_line_is_followed_by_another_list(line: bytes, moment: str) -> None:
    first: list[JsonObject | bytes] = [
        event("ADDED", "a", 1, "x"),
        event("ADDED", "b", 2, "x"),
        end_of_list(2),
    ]
    changed = [event("ADDED", "a", 3, "x"), end_of_list(4)]
    before: list[JsonObject | bytes] = (
        [first[0], line] if moment == "in the list" else [*first, line]
    )
    assert await cached(Streaming(before, changed)) == {"a": "x"}


async def test_a_watch_whose_first_line_is_always_wrong_is_repeated_ever_more_slowly() -> None:
    broken: list[JsonObject | bytes] = [event("ADDED", "a", 1, "x"), end_of_list(1), b"[]"]
    transport = Streaming(*[broken] * 100)
    cache = Cache(Client(transport), CONFIG_MAP, keep)
    task = asyncio.create_task(cache.run())
    await asyncio.sleep(60)
    task.cancel()
    assert len(transport._lists) > 85


async def test_an_absurd_resource_version_deletes_nothing() -> None:
    transport = Streaming(
        [event("ADDED", "a", 1, "x"), end_of_list(1), event("MODIFIED", "a", 10**20, "y"), b"[]"],
        [event("ADDED", "a", 1, "x"), end_of_list(1)],
        [event("ADDED", "a", 1, "x"), end_of_list(1)],
    )
    changes: list[Change[str]] = []
    cache = Cache(Client(transport), CONFIG_MAP, keep)
    cache.subscribe(changes.append)
    task = asyncio.create_task(cache.run())
    await asyncio.sleep(60)
    task.cancel()
    assert dict(cache.items()) == {Key("ns", "a"): "x"}
    assert all(change.new is not None for change in changes)
