"""Edits for the webhooks that are asked about every pod: made at once, without a Draft.

They append to lists and never read what they changed, so that keeping a copy would only cost time.
"""

from collections.abc import Sequence

from pergola.admission.review import Edit, Verdict, allowed
from pergola.api.objects import JsonObject


def appended(pointer: str, present: Sequence[JsonObject], value: JsonObject, because: str) -> Edit:
    """Adds a value to the end of a list, which is made if it is absent or empty.

    Args:
        pointer: of the list; what is above it must be there.
        present: what the list has.
    """
    if present:
        return Edit("add", f"{pointer}/-", value, because)
    return Edit("add", pointer, [value], because)


def verdict(edits: Sequence[Edit], unchanged: str, *, warnings: tuple[str, ...] = ()) -> Verdict:
    """The answer that allows the request with these edits.

    Args:
        unchanged: why there is nothing to change, if there is nothing.
    """
    if edits:
        return Verdict(edits=tuple(edits), warnings=warnings)
    return allowed(because=unchanged, warnings=warnings)
