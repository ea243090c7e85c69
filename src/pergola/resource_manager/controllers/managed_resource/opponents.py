"""Other writers that revert what a ManagedResource describes, and how users end such a fight."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pergola.api import marks
from pergola.api.object_names import name_problem
from pergola.api.objects import JsonObject, annotations_of, maps_at, owner_references_of
from pergola.kube.transport import USER_AGENT
from pergola.resource_manager.controllers.managed_resource.fights import INTERVAL_SECONDS
from pergola.resource_manager.origin import parse_origin

_NAMED_AT_MOST: Final = 5
_LONGEST_ORIGIN: Final = 1024
_BULLET: Final = "* "


@dataclass(frozen=True, slots=True)
class Opponent:
    """The other side of a fight about an object.

    Attributes:
        writer: its field manager, or the ManagedResource that it applies; empty if unknown.
        deletes: whether it deletes the object.
    """

    writer: str
    deletes: bool


def opponent_in(live: JsonObject | None, owner: str) -> Opponent:
    """Return who last changed an object.

    Args:
        live: the object as read; None if it does not exist.
        owner: the origin of the objects of this ManagedResource.
    """
    if live is None:
        return Opponent("", deletes=True)
    origin = annotations_of(live).get(marks.ORIGIN, "")
    if origin != owner and _can_be_origin(origin):
        return Opponent(f"ManagedResource {origin}", deletes=False)
    entries = [
        (str(entry.get("time") or ""), str(entry.get("manager") or ""))
        for entry in maps_at(live, "metadata", "managedFields")
        if not entry.get("subresource") and entry.get("manager") != USER_AGENT
    ]
    return Opponent(max(entries, default=("", ""))[1], deletes=False)


def _can_be_origin(text: str) -> bool:
    """Return whether an annotation, which anyone may write, can be the origin of an object."""
    origin = parse_origin(text)
    return (
        origin is not None
        and len(text) <= _LONGEST_ORIGIN
        and text.isprintable()
        and not (name_problem(origin.namespace) or name_problem(origin.name))
    )


def fight_remark(described: str, opponent: Opponent, since: datetime, manifest: JsonObject) -> str:
    """Return a sentence about a fight, and how to end it.

    Args:
        described: the object, as `describe` formats it.
        manifest: of the object.
    """
    began = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    spaced = f"once in {INTERVAL_SECONDS:.0f} seconds"
    if opponent.deletes:
        owners = owner_references_of(manifest)
        cause = (
            "; without the owners that its manifest names, the garbage collector of Kubernetes "
            "deletes it"
            if owners
            else ""
        )
        return (
            f"{described} has been deleted repeatedly since {began}, so it is recreated only "
            f'{spaced}{cause}; annotation {marks.MODE}: "{marks.MODE_IGNORE}" in its manifest '
            "ends this"
        )
    writer = opponent.writer or "another client"
    return (
        f"{described} has been changed repeatedly by {writer} since {began}, so it is repaired "
        f'only {spaced}; annotation {marks.IGNORE}: "true" in its manifest leaves it to {writer}'
    )


def with_remarks(message: str, remarks: Sequence[str]) -> str:
    """Append remarks to the message of a condition, one in each line."""
    named = list(remarks[:_NAMED_AT_MOST])
    if len(remarks) > len(named):
        named.append(f"and {len(remarks) - len(named)} more")
    return "\n".join([message, *(f"{_BULLET}{remark}" for remark in named)])


def remarks_in(message: str) -> list[str]:
    """Return the remarks in the message of a condition."""
    lines = message.split("\n")[1:]
    return [line.removeprefix(_BULLET) for line in lines if line.startswith(_BULLET)]
