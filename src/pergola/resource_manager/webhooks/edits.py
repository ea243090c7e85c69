"""Edits without a Draft, for webhooks that review every pod.

These webhooks append to lists and never read their own changes, so copying would only cost time.
"""

from collections.abc import Sequence

from pergola.admission.review import Edit, Verdict, allowed
from pergola.api.objects import JsonObject


def appended(pointer: str, present: Sequence[JsonObject], value: JsonObject, because: str) -> Edit:
    """Append a value to a list, creating it if it is absent or empty.

    Args:
        pointer: of the list; its parents must exist.
        present: the current items.
    """
    if present:
        return Edit("add", f"{pointer}/-", value, because)
    return Edit("add", pointer, [value], because)


def verdict(edits: Sequence[Edit], unchanged: str, *, warnings: tuple[str, ...] = ()) -> Verdict:
    """Return the answer that allows the request with these edits.

    Args:
        unchanged: why nothing changes, if there are no edits.
    """
    if edits:
        return Verdict(edits=tuple(edits), warnings=warnings)
    return allowed(because=unchanged, warnings=warnings)
