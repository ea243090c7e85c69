"""What needs attention in a cluster: the list with which the dashboard begins.

The dashboard judges each object (`card_of`), and lists those that have been in a bad state for
longer than they may (`Card.due`). It watches, so it knows since when; here, a state whose age no
object records counts from the last write to the object.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from pergola.api.objects import GroupVersionKind, JsonObject, maps_at
from pergola.dashboard.state.cards import Card, card_of
from pergola.dashboard.state.kinds import WATCHED
from pergola.dashboard.state.verdicts import BAD
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, UnknownKind
from pergola.runtime.task_group import gathered


class Attention(NamedTuple):
    """What needs attention, and what was checked.

    Attributes:
        cards: of the objects that need it, those first that have needed it longest.
        checked: the number of objects of each kind that was listed.
        unread: the kinds that the user may not list.
    """

    cards: tuple[Card, ...]
    checked: dict[GroupVersionKind, int]
    unread: tuple[GroupVersionKind, ...]


async def attention(client: Client, namespace: str | None, now: datetime) -> Attention:
    """Return what needs attention in a namespace, or in the whole cluster.

    Raises:
        Forbidden: the user may list none of the kinds.
        KubeError: the API server did not answer.
    """
    lists = await gathered(_cards(client, gvk, namespace) for gvk in WATCHED)
    found = dict(zip(WATCHED, lists, strict=True))
    refused = {gvk: each for gvk, each in found.items() if isinstance(each, Forbidden)}
    read = {gvk: each for gvk, each in found.items() if isinstance(each, list)}
    if refused and not read:
        raise next(iter(refused.values()))
    cards = (card for each in read.values() for card in each)
    return Attention(
        cards=tuple(needing_attention(cards, now)),
        checked={gvk: len(each) for gvk, each in read.items()},
        unread=tuple(refused),
    )


def needing_attention(cards: Iterable[Card], now: datetime) -> list[Card]:
    """Return the cards that need attention, in the order of the dashboard."""
    found = (card for card in cards if card.due is not None and card.due <= now)
    return sorted(found, key=lambda card: (card.since, card.id))


async def _cards(
    client: Client, gvk: GroupVersionKind, namespace: str | None
) -> list[Card] | Forbidden | None:
    """Return the cards of a kind; None if it has no objects there."""
    try:
        resource = await client.resource(gvk)
        if namespace is not None and not resource.namespaced:
            return None
        return [_card(gvk, obj) for obj in await client.list(gvk, namespace)]
    except UnknownKind:
        return None
    except Forbidden as error:
        return error


def _card(gvk: GroupVersionKind, obj: JsonObject) -> Card:
    card = card_of(gvk, obj)
    if card.verdict.since or card.verdict.state not in BAD:
        return card
    return replace(card, verdict=replace(card.verdict, since=max(_writes(obj), default="")))


def _writes(obj: JsonObject) -> Iterator[str]:
    for entry in maps_at(obj, "metadata", "managedFields"):
        yield str(entry.get("time") or "")
