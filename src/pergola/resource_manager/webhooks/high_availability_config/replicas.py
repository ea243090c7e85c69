"""How many replicas there should be (spec 12 §3.2)."""

from typing import Final

CONTROLLER: Final = "controller"
TYPES: Final = (CONTROLLER, "server")
_LARGEST: Final = 2**31 - 1


class ReplicasError(Exception):
    """The annotation with the number of replicas has none."""


def wanted_replicas(kind: str, tolerance: str | None, override: str) -> int | None:
    """Return the number that a component should have; None if it has no type, and is left alone.

    Args:
        kind: the component type; every other text than `controller` counts as `server`.
        tolerance: the failure tolerance type; None if unset.
        override: the value of the annotation; empty if there is none.

    Raises:
        ReplicasError: the annotation's value is no number of replicas.
    """
    if not kind:
        return None
    if override:
        return read_replicas(override)
    return 1 if kind == CONTROLLER and tolerance == "" else 2


def read_replicas(text: str) -> int:
    """Return a number of replicas.

    Raises:
        ReplicasError: it is none.
    """
    try:
        number = int(text)
    except ValueError:
        number = -1
    # Python's numbers may have blanks around them, underscores, and other digits than Go's.
    if not 0 <= number <= _LARGEST or not text.isascii() or "_" in text or text != text.strip():
        raise ReplicasError(f'"{text}" is no number of replicas; write for example "3"')
    return number


def replicas_of(present: int, wanted: int | None, *, is_scaled: bool) -> int:
    """Return what the replicas become; those that are hibernated stay at 0."""
    if wanted is None or present == 0:
        return present
    if is_scaled and present >= wanted:
        return present
    return wanted


def range_of(least: int, most: int, wanted: int | None) -> tuple[int, int]:
    """Return what minimum and maximum of an autoscaler become; the minimum is never lowered."""
    if wanted is None or least == 0 or least >= wanted:
        return least, most if least == 0 or wanted is None else max(most, least)
    return wanted, max(most, wanted)
