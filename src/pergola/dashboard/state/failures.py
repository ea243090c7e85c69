"""Since when an object fails: attempts to mend it do not start its time again.

Controllers write the time of the last attempt into the last operation, and some conditions change
at each attempt. An object has failed since the first one that was seen after it was healthy.
"""

from dataclasses import replace
from typing import NamedTuple

from pergola.dashboard.state.cards import Card
from pergola.dashboard.state.verdicts import State


class _Failure(NamedTuple):
    uid: str
    since: str


class Failures:
    """The objects that fail, and since when."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}

    def earliest(self, card: Card) -> Card:
        """Return a card whose failure begins with the first one since it was healthy."""
        if card.verdict.state is State.HEALTHY:
            self.forget(card.id)
        known = self._failures.get(card.id)
        if card.verdict.state is not State.TROUBLE or not card.verdict.since:
            return card
        since = card.verdict.since
        if known is not None and known.uid == card.uid:
            since = min(since, known.since)
        self._failures[card.id] = _Failure(card.uid, since)
        return replace(card, verdict=replace(card.verdict, since=since))

    def forget(self, name: str) -> None:
        """Forget the card with an id, which is healthy or gone."""
        self._failures.pop(name, None)
