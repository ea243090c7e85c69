"""Reading conditions of live objects: what is required, what only counts if it is there."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pergola.api.objects import JsonObject, maps_at


class Wanted(NamedTuple):
    """A condition that has to have a status; if `optional`, only where it exists."""

    type: str
    status: str = "True"
    optional: bool = False


def conditions_problem(obj: JsonObject, wanted: Sequence[Wanted]) -> str | None:
    """What the conditions of an object say against its health, or None."""
    return next(_problems(obj, wanted), None)


def condition(obj: JsonObject, kind: str) -> JsonObject | None:
    """The status condition of a type."""
    found = (c for c in maps_at(obj, "status", "conditions") if c.get("type") == kind)
    return next(found, None)


def _problems(obj: JsonObject, wanted: Sequence[Wanted]) -> Iterator[str]:
    for kind, status, optional in wanted:
        found = condition(obj, kind)
        if found is None:
            if not optional:
                yield f"condition {kind} is missing"
        elif found.get("status") != status:
            reason, text = found.get("reason") or "no reason", found.get("message") or ""
            yield (
                f"condition {kind} is {found.get('status')}, expected {status}: {reason}"
                + (f" ({text})" if text else "")
            )
