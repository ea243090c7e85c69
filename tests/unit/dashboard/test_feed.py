"""Numbered changes, and the ones that a reconnecting page gets."""

import asyncio
from typing import NamedTuple

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.dashboard.state.feed import Feed, Position
from pergola.dashboard.state.scope import Scope


class Entry(NamedTuple):
    id: str
    text: str = ""

    @property
    def scope(self) -> Scope:
        return Scope(CONFIG_MAP, Key("", self.id))

    def data(self) -> JsonObject:
        return {"id": self.id, "text": self.text}


async def test_a_new_page_gets_everything() -> None:
    feed = Feed()
    feed.put(Entry("a"))
    changes = feed.since(None)
    assert changes.is_complete
    assert changes.items == [Entry("a")]
    assert changes.position == feed.position


async def test_an_entry_with_several_changes_is_sent_once_with_its_last_state() -> None:
    feed = Feed()
    feed.put(Entry("a"))
    feed.put(Entry("b"))
    position = feed.position
    feed.put(Entry("a", "first"))
    feed.put(Entry("c"))
    feed.put(Entry("a", "last"))
    changes = feed.since(position)
    assert not changes.is_complete
    assert changes.items == [Entry("c"), Entry("a", "last")]


async def test_removed_entries_are_listed_unless_they_were_recreated() -> None:
    feed = Feed()
    for name in ("a", "b"):
        feed.put(Entry(name))
    position = feed.position
    for name in ("a", "b", "never"):
        feed.drop(name)
    feed.put(Entry("b", "again"))
    changes = feed.since(position)
    assert changes.gone == ["a"]
    assert changes.items == [Entry("b", "again")]


@pytest.mark.parametrize("text", ["", "x", "00000000.1", "{epoch}.9", "{epoch}.-1x"])
async def test_an_unknown_position_gets_everything(text: str) -> None:
    feed = Feed()
    feed.put(Entry("a"))
    position = Position.parse(text.format(epoch=feed.position.epoch))
    changes = feed.since(position)
    assert changes.is_complete or position.number == 0
    assert changes.items == [Entry("a")]


async def test_a_page_that_missed_discarded_removals_starts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pergola.dashboard.state.feed._REMEMBERED", 2)
    feed = Feed()
    position = feed.position
    for name in ("a", "b", "c"):
        feed.put(Entry(name))
        feed.drop(name)
    assert feed.since(position).is_complete
    assert not feed.since(feed.position).is_complete


async def test_a_change_ends_the_wait() -> None:
    feed = Feed()
    waiting = asyncio.create_task(feed.beyond(feed.position))
    await asyncio.sleep(0)
    assert not waiting.done()
    feed.put(Entry("a"))
    await waiting
