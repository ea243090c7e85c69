"""Entries of the time line: Events, and changes of conditions, within the last hour."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pergola.api.kinds import EVENT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, metadata_of, uid_of
from pergola.dashboard.state.cards import LONGEST_PROBLEM, Card, card_id
from pergola.dashboard.state.scope import Scope
from pergola.dashboard.state.verdicts import Condition, State
from pergola.health.times import read_time

WINDOW: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An entry of the time line.

    Attributes:
        time: RFC 3339.
        gvk: Of the object that it is about.
        key: Of the object that it is about.
        count: The number of occurrences.
    """

    id: str
    time: str
    gvk: GroupVersionKind
    key: Key
    state: State
    title: str
    text: str
    scope: Scope
    count: int = 1

    def data(self) -> JsonObject:
        """Return the entry in the page's format."""
        return {
            "id": self.id,
            "time": self.time,
            "about": card_id(self.gvk, self.key),
            "kind": self.gvk.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "state": self.state.value,
            "title": self.title,
            "text": self.text[:LONGEST_PROBLEM],
            "count": self.count,
        }

    def is_recent(self, now: datetime) -> bool:
        """Return whether it is within the window."""
        time = read_time(self.time)
        return time is not None and now - time <= WINDOW


def event_moment(event: JsonObject) -> Moment:
    """Return the entry for an Event; a repeated one is listed at its last occurrence."""
    regarding, series = map_at(event, "regarding"), map_at(event, "series")
    gvk = GroupVersionKind.parse(
        str(regarding.get("apiVersion") or ""), str(regarding.get("kind") or "")
    )
    return Moment(
        id=f"event/{uid_of(event)}",
        time=_event_time(event, series),
        gvk=gvk,
        key=Key(str(regarding.get("namespace") or ""), str(regarding.get("name") or "")),
        state=State.TROUBLE if event.get("type") == "Warning" else State.HEALTHY,
        title=str(event.get("reason") or ""),
        text=str(event.get("note") or ""),
        scope=Scope(EVENT, Key.of(event)),
        count=_count(event, series),
    )


def condition_moments(old: Card | None, new: Card) -> Iterator[Moment]:
    """Yield an entry for each condition that changed."""
    before = {each.kind: each for each in old.conditions} if old and old.uid == new.uid else {}
    for condition in new.conditions:
        known = before.get(condition.kind)
        if condition.since and (known is None or known.status != condition.status):
            yield _condition_moment(new, condition)


def _condition_moment(card: Card, condition: Condition) -> Moment:
    return Moment(
        id=f"condition/{card.id}/{condition.kind}/{condition.since}/{condition.status}",
        time=condition.since,
        gvk=card.gvk,
        key=card.key,
        state=condition.state,
        title=f"{condition.kind} is {condition.status}",
        text=condition.message or condition.reason,
        scope=card.scope,
    )


def _event_time(event: JsonObject, series: JsonObject) -> str:
    """Return the time of the last occurrence; Events of the old API have only deprecated fields."""
    found = (
        series.get("lastObservedTime")
        or event.get("deprecatedLastTimestamp")
        or event.get("eventTime")
        or metadata_of(event).get("creationTimestamp")
    )
    return str(found or "")


def _count(event: JsonObject, series: JsonObject) -> int:
    count = series.get("count") or event.get("deprecatedCount")
    return count if isinstance(count, int) else 1
