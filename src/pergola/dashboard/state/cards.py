"""An object as the page lists it: identity, state, and conditions."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    maps_at,
    metadata_of,
    owner_references_of,
    uid_of,
)
from pergola.dashboard.state.scope import Scope
from pergola.dashboard.state.verdicts import BAD, Condition, Verdict, conditions, verdict
from pergola.health.times import read_time

LONGEST_PROBLEM: Final = 400
"""In characters; the full text is in the details of the object."""
_OWNING_LABELS: Final = (marks.ORIGIN_LABEL, "app.kubernetes.io/managed-by", marks.MANAGED_BY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An object in the lists of the page.

    Attributes:
        owner: What manages the object; empty if the object does not say it.
    """

    gvk: GroupVersionKind
    key: Key
    uid: str
    created: str
    verdict: Verdict
    conditions: tuple[Condition, ...]
    objects: int
    owner: str

    @property
    def id(self) -> str:
        """The identity in the feed and in addresses of the page."""
        return card_id(self.gvk, self.key)

    @property
    def scope(self) -> Scope:
        """The object that a viewer must be allowed to read."""
        return Scope(self.gvk, self.key)

    @property
    def since(self) -> str:
        """When the state began, as far as it is known (RFC 3339)."""
        return self.verdict.since or self.created

    @property
    def due(self) -> datetime | None:
        """When the state will have lasted too long; None if it may last, or beyond year 9999."""
        began = read_time(self.since)
        if self.verdict.state not in BAD or began is None:
            return None
        try:
            return began + timedelta(seconds=self.verdict.patience)
        except OverflowError:
            return None

    def data(self) -> JsonObject:
        """Return the card in the page's format."""
        it = self.verdict
        due = self.due
        return {
            "id": self.id,
            "apiVersion": self.gvk.api_version,
            "kind": self.gvk.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "state": it.state.value,
            "problem": it.problem[:LONGEST_PROBLEM],
            "since": self.since,
            "due": due.isoformat() if due else "",
            "created": self.created,
            "objects": self.objects,
            "owner": self.owner,
            "conditions": [[each.kind, each.status, each.state] for each in self.conditions],
        }


def card_of(gvk: GroupVersionKind, obj: JsonObject) -> Card:
    """Return the card of an object; nothing else of the object is kept."""
    return Card(
        gvk=gvk,
        key=Key.of(obj),
        uid=uid_of(obj),
        created=str(metadata_of(obj).get("creationTimestamp") or ""),
        verdict=verdict(gvk, obj),
        conditions=tuple(conditions(obj)),
        objects=len(maps_at(obj, "status", "resources")),
        owner=owner_of(obj),
    )


def card_id(gvk: GroupVersionKind, key: Key) -> str:
    """Return the identity of a card: API version, kind, namespace and name."""
    return f"{gvk.api_version}/{gvk.kind}/{key.namespace}/{key.name}"


def owner_of(obj: JsonObject) -> str:
    """Return what manages an object: a ManagedResource, its controller, or who created it."""
    origin = annotations_of(obj).get(marks.ORIGIN)
    if origin:
        return f"ManagedResource {origin.rpartition(':')[2]}"
    for reference in owner_references_of(obj):
        if reference.get("controller") is True:
            return f"{reference.get('kind')} {reference.get('name')}"
    labels = labels_of(obj)
    return next(filter(None, (labels.get(name) for name in _OWNING_LABELS)), "")
