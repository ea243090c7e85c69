"""The caches behind the page: one per kind, each object as a card, and the Events."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.kinds import EVENT
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.dashboard.state.cards import Card, card_id, card_of
from pergola.dashboard.state.failures import Failures
from pergola.dashboard.state.feed import Feed
from pergola.dashboard.state.kinds import WATCHED
from pergola.dashboard.state.moments import Moment, condition_moments, event_moment
from pergola.dashboard.state.verdicts import State
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.unit import Unit, unsynced
from pergola.runtime.task_group import gathered

_SWEEP_SECONDS: Final = 30.0


class Board:
    """Everything that the page lists, in its current state.

    Args:
        client: Lists and watches.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock | None = None,
        kinds: Sequence[GroupVersionKind] = WATCHED,
    ) -> None:
        self.feed = Feed()
        self._failures = Failures()
        self._clock = clock or SystemClock()
        self._cards = {gvk: Cache(client, gvk, partial(self._card, gvk)) for gvk in kinds}
        self._events: Cache[Moment] = Cache(client, EVENT, event_moment)
        for gvk, cache in self._cards.items():
            cache.subscribe(partial(self._card_changed, gvk))
        self._events.subscribe(self._event_changed)

    def unit(self) -> Unit:
        """Return the part of a process that keeps the board up to date."""
        return Unit("dashboard", beside=self._caches, tasks=[self._sweep])

    def problems(self) -> list[JsonObject]:
        """Return the kinds whose entries may be out of date, each with the reason."""
        lost = unsynced(self._caches)
        return [{"kind": each.kind, "problem": each.problem} for each in lost]

    async def synced(self) -> None:
        """Wait until all first lists are complete."""
        await gathered(cache.synced() for cache in self._caches)

    @property
    def _caches(self) -> list[Cache[Card] | Cache[Moment]]:
        return [*self._cards.values(), self._events]

    def _card(self, gvk: GroupVersionKind, obj: JsonObject) -> Card:
        """Return the card of an object; a state of unknown age starts when it is first seen."""
        card = self._failures.earliest(card_of(gvk, obj))
        if card.verdict.since or card.verdict.state is State.HEALTHY:
            return card
        old = self._cards[gvk].get(card.key)
        is_known = old is not None and old.verdict.state is card.verdict.state
        since = old.verdict.since if old and is_known else timestamp(self._clock.now())
        return replace(card, verdict=replace(card.verdict, since=since))

    def _card_changed(self, gvk: GroupVersionKind, change: Change[Card]) -> None:
        if change.new is None:
            self._failures.forget(card_id(gvk, change.key))
            self.feed.drop(card_id(gvk, change.key))
            return
        if change.old is None or change.old.data() != change.new.data():
            self.feed.put(change.new)
        for moment in condition_moments(change.old, change.new):
            self._add(moment)

    def _event_changed(self, change: Change[Moment]) -> None:
        if change.new is not None:
            self._add(change.new)
        elif change.old is not None:
            self.feed.drop(change.old.id)

    def _add(self, moment: Moment) -> None:
        if moment.is_recent(self._clock.now()):
            self.feed.put(moment)

    async def _sweep(self) -> None:
        """Remove moments that are older than the time line."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = self._clock.now()
            old = [
                each.id
                for each in self.feed.items()
                if isinstance(each, Moment) and not each.is_recent(now)
            ]
            for name in old:
                self.feed.drop(name)
