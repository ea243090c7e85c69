"""An object as the page lists it: identity, state, and conditions."""

from dataclasses import dataclass
from typing import Final

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    maps_at,
    metadata_of,
    uid_of,
)
from pergola.dashboard.state.scope import Scope
from pergola.dashboard.state.verdicts import Condition, Verdict, conditions, verdict

LONGEST_PROBLEM: Final = 400
"""In characters; the full text is in the details of the object."""
_SHOWN_LABELS: Final = ("origin", "gardener.cloud/role", "app")


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An object in the lists of the page."""

    gvk: GroupVersionKind
    key: Key
    uid: str
    created: str
    verdict: Verdict
    conditions: tuple[Condition, ...]
    objects: int
    labels: dict[str, str]

    @property
    def id(self) -> str:
        """The identity in the feed and in addresses of the page."""
        return card_id(self.gvk, self.key)

    @property
    def scope(self) -> Scope:
        """The object that a viewer must be allowed to read."""
        return Scope(self.gvk, self.key)

    def data(self) -> JsonObject:
        """Return the card in the page's format."""
        it = self.verdict
        return {
            "id": self.id,
            "apiVersion": self.gvk.api_version,
            "kind": self.gvk.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "state": it.state.value,
            "problem": it.problem[:LONGEST_PROBLEM],
            "since": it.since or self.created,
            "patience": it.patience,
            "created": self.created,
            "objects": self.objects,
            "labels": self.labels,
            "conditions": [[each.kind, each.status, each.state] for each in self.conditions],
        }


def card_of(gvk: GroupVersionKind, obj: JsonObject) -> Card:
    """Return the card of an object; nothing else of the object is kept."""
    labels = labels_of(obj)
    return Card(
        gvk=gvk,
        key=Key.of(obj),
        uid=uid_of(obj),
        created=str(metadata_of(obj).get("creationTimestamp") or ""),
        verdict=verdict(gvk, obj),
        conditions=tuple(conditions(obj)),
        objects=len(maps_at(obj, "status", "resources")),
        labels={name: labels[name] for name in _SHOWN_LABELS if name in labels},
    )


def card_id(gvk: GroupVersionKind, key: Key) -> str:
    """Return the identity of a card: API version, kind, namespace and name."""
    return f"{gvk.api_version}/{gvk.kind}/{key.namespace}/{key.name}"
