"""Pages whose viewers see the same get the same bytes; others do not."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import cast

import orjson
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.dashboard.access.viewer import Viewer
from pergola.dashboard.server.shared import Shared
from pergola.dashboard.server.stream import Stream
from pergola.dashboard.state.board import Board
from pergola.dashboard.state.cards import card_of
from pergola.dashboard.state.feed import Feed
from pergola.dashboard.state.scope import Scope

NAMESPACES = ("a", "b", "c")


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


class FakeBoard:
    def __init__(self) -> None:
        self.feed = Feed()
        for namespace in NAMESPACES:
            self.add(namespace, "one")

    def add(self, namespace: str, name: str) -> None:
        metadata = {"namespace": namespace, "name": name}
        self.feed.put(card_of(CONFIG_MAP, {"metadata": metadata}))

    def problems(self) -> list[JsonObject]:
        return []


class FakeViewer:
    sees_all = False

    def __init__(self, namespaces: Sequence[str]) -> None:
        self._namespaces = namespaces

    async def is_welcome(self) -> bool:
        return True

    async def may_see(self, scopes: Sequence[Scope]) -> list[bool]:
        return [scope.key.namespace in self._namespaces for scope in scopes]

    def problems(self) -> list[JsonObject]:
        return []


async def first(board: FakeBoard, shared: Shared, *namespaces: str) -> bytes:
    """Return the first message of a new page."""
    viewer = cast("Viewer", FakeViewer(namespaces))
    stream = Stream(cast("Board", board), viewer, FixedClock(), shared, None)
    messages = stream.messages()
    try:
        return await anext(messages)
    finally:
        await messages.aclose()


def names(message: bytes) -> Iterator[str]:
    """Yield the objects in a message."""
    data = message.partition(b"data: ")[2]
    for item in orjson.loads(data)["items"]:
        yield f"{item['namespace']}/{item['name']}"


async def test_equal_permissions_share_one_message_until_something_changes() -> None:
    board, shared = FakeBoard(), Shared()
    one, other = await first(board, shared, "a", "b"), await first(board, shared, "b", "a", "x")
    assert one is other
    board.add("c", "two")
    later = await first(board, shared, "a", "b")
    assert later is not one
    assert later == one


@given(
    viewers=st.lists(st.sets(st.sampled_from(NAMESPACES)), max_size=9),
    additions=st.lists(st.sampled_from(NAMESPACES), max_size=9),
)
async def test_each_viewer_gets_exactly_what_they_may_see(
    viewers: list[set[str]], additions: list[str]
) -> None:
    board, shared = FakeBoard(), Shared()
    existing = {Key(namespace, "one") for namespace in NAMESPACES}
    for number, allowed in enumerate(viewers):
        if number < len(additions):
            board.add(additions[number], f"new-{number}")
            existing.add(Key(additions[number], f"new-{number}"))
        message = await first(board, shared, *sorted(allowed))
        expected = {str(key) for key in existing if key.namespace in allowed}
        assert {*names(message)} == expected
