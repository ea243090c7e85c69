"""Numbered changes of the entries that pages show, so that a page can resume where it was.

Only the last change of an entry is kept: a page that was disconnected gets the differences, not the
history.
"""

import asyncio
import re
import secrets
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.dashboard.state.scope import Item

_REMEMBERED: Final = 10_000
"""The number of removed entries to remember; a page that missed more must start again."""


_POSITION: Final = re.compile(r"(?P<epoch>[0-9a-f]+)\.(?P<number>[0-9]{1,18})")


class Position(NamedTuple):
    """A place in the feed of one process."""

    epoch: str
    number: int

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Parse a position as written by `str`; any other text is a position in no feed."""
        found = _POSITION.fullmatch(text)
        return cls(found["epoch"], int(found["number"])) if found else cls("", 0)

    def __str__(self) -> str:
        return f"{self.epoch}.{self.number}"


class Changes(NamedTuple):
    """The difference between two positions.

    Attributes:
        is_complete: Whether the changes are the whole feed, so that all other entries must be
            dropped.
        position: The position after the changes.
    """

    is_complete: bool
    items: list[Item]
    gone: list[str]
    position: Position


class Feed:
    """The current entries, ordered by their last change."""

    def __init__(self) -> None:
        self.position = Position(secrets.token_hex(4), 0)
        self._items: dict[str, Item] = {}
        self._changed: OrderedDict[str, int] = OrderedDict()
        self._gone: OrderedDict[str, int] = OrderedDict()
        self._horizon = 0
        self._news = asyncio.Event()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, name: str) -> Item | None:
        """Return an entry, or None if no entry has this id."""
        return self._items.get(name)

    def items(self) -> Iterable[Item]:
        """Return all entries; do not hold the result across an await."""
        return self._items.values()

    def put(self, item: Item) -> None:
        """Add an entry, or replace the one with the same id."""
        self._items[item.id] = item
        self._gone.pop(item.id, None)
        self._changed[item.id] = self._advance()
        self._changed.move_to_end(item.id)

    def drop(self, name: str) -> None:
        """Remove the entry with an id, if there is one."""
        if self._items.pop(name, None) is None:
            return
        del self._changed[name]
        self._gone[name] = self._advance()
        if len(self._gone) > _REMEMBERED:
            _, self._horizon = self._gone.popitem(last=False)

    def since(self, position: Position | None) -> Changes:
        """Return the changes since a position; everything if it is None, or too old."""
        if position is None or not self._knows(position):
            everything = list(self._items.values())
            return Changes(is_complete=True, items=everything, gone=[], position=self.position)
        changed = [self._items[name] for name in _after(self._changed, position.number)]
        gone = _after(self._gone, position.number)
        return Changes(is_complete=False, items=changed, gone=gone, position=self.position)

    async def beyond(self, position: Position) -> None:
        """Wait until there are changes after a position."""
        while self.position == position:
            await self._news.wait()

    def _knows(self, position: Position) -> bool:
        is_past = self._horizon <= position.number <= self.position.number
        return position.epoch == self.position.epoch and is_past

    def _advance(self) -> int:
        self.position = self.position._replace(number=self.position.number + 1)
        self._news.set()
        self._news = asyncio.Event()
        return self.position.number


def _after(numbers: OrderedDict[str, int], number: int) -> list[str]:
    """Return the names with a later number, oldest first."""
    found: list[str] = []
    for name in reversed(numbers):
        if numbers[name] <= number:
            break
        found.append(name)
    return found[::-1]
