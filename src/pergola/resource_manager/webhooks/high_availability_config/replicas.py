"""The desired number of replicas (spec 12 §3.2)."""

from typing import Final

CONTROLLER: Final = "controller"
TYPES: Final = (CONTROLLER, "server")
_LARGEST: Final = 2**31 - 1


class ReplicasError(Exception):
    """The annotation with the number of replicas is not valid."""


def desired_replicas(kind: str, tolerance: str | None, override: str) -> int | None:
    """Return the desired number for a component; None if it has no type and is skipped.

    Args:
        kind: the component type; anything other than `controller` counts as `server`.
        tolerance: the failure tolerance type; None if unset.
        override: the value of the annotation; empty if there is none.

    Raises:
        ReplicasError: the annotation's value is not a number of replicas.
    """
    if not kind:
        return None
    if override:
        return read_replicas(override)
    return 1 if kind == CONTROLLER and tolerance == "" else 2


def read_replicas(text: str) -> int:
    """Parse a number of replicas.

    Raises:
        ReplicasError: the text is not a number of replicas.
    """
    try:
        number = int(text)
    except ValueError:
        number = -1
    # Unlike Go, Python accepts surrounding blanks, underscores and non-ASCII digits.
    if not 0 <= number <= _LARGEST or not text.isascii() or "_" in text or text != text.strip():
        raise ReplicasError(f'"{text}" is not a number of replicas; write for example "3"')
    return number


def replicas_of(present: int, desired: int | None, *, is_scaled: bool) -> int:
    """Return the new number of replicas; a hibernated workload stays at 0."""
    if desired is None or present == 0:
        return present
    if is_scaled and present >= desired:
        return present
    return desired


def range_of(least: int, most: int, desired: int | None) -> tuple[int, int]:
    """Return the new minimum and maximum of an autoscaler; the minimum is never lowered."""
    if desired is None or least == 0 or least >= desired:
        return least, most if least == 0 or desired is None else max(most, least)
    return desired, max(most, desired)
