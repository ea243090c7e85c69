"""Differences between two landscapes of the same Garden."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

from pergola.api.kinds import CRD
from pergola.api.objects import GroupKind, without_empty
from pergola.kube.equality import EXACT, Difference, Shape, differences, shape_of, shapes_of
from pergola.operator.compare.normalise import TEXT, normalise
from pergola.operator.compare.placed import Identity, Placed

KEPT_BY: Final = "(kept by)"
"""The path of a difference between two ManagedResources, or between one and none."""


@dataclass(frozen=True, slots=True)
class Differing:
    """An object of both sides, and the fields in which it differs.

    Attributes:
        fields: In each, `one` is from there and `other` from here.
    """

    there: Placed
    here: Placed
    fields: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences of two landscapes.

    Attributes:
        equal: The number of objects that are equal on both sides.
    """

    only_there: list[Placed] = field(default_factory=list)
    only_here: list[Placed] = field(default_factory=list)
    differing: list[Differing] = field(default_factory=list)
    equal: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether there is no difference."""
        return not (self.only_there or self.only_here or self.differing)

    @property
    def groups(self) -> list[str]:
        """The headings of all differences, in order."""
        alone = (placed.group for placed in (*self.only_here, *self.only_there))
        return sorted({*alone, *(each.here.group for each in self.differing)})

    def of_groups(self, names: Collection[str]) -> Self:
        """Return only the differences of these components and ManagedResources."""
        return replace(
            self,
            only_there=[each for each in self.only_there if each.is_of(names)],
            only_here=[each for each in self.only_here if each.is_of(names)],
            differing=[each for each in self.differing if each.here.is_of(names)],
        )


def compare(
    there: Sequence[Placed], here: Sequence[Placed], *, has_texts: bool = True
) -> Comparison:
    """Return the differences.

    Args:
        there: The landscape of the original.
        here: The objects that ours renders.
        has_texts: Whether both include long texts and the values of ConfigMaps.
    """
    theirs, ours = _by_identity(there), _by_identity(here)
    shapes = shapes_of(placed.obj for placed in here if placed.identity.kind == CRD.group_kind)
    both = [identity for identity in ours if identity in theirs]
    differing = [
        Differing(theirs[identity], ours[identity], fields)
        for identity in both
        if (fields := _fields(theirs[identity], ours[identity], shapes, has_texts))
    ]
    return Comparison(
        only_there=[placed for each, placed in theirs.items() if each not in ours],
        only_here=[placed for each, placed in ours.items() if each not in theirs],
        differing=differing,
        equal=len(both) - len(differing),
    )


def _by_identity(objects: Sequence[Placed]) -> dict[Identity, Placed]:
    """Return the objects that operators apply, by identity.

    If there are several generations of an object, the first one counts; an object kept by a
    ManagedResource counts as written there, not as stored by a server.
    """
    found: dict[Identity, Placed] = {}
    for placed in objects:
        known = found.get(placed.identity)
        if known is None or (placed.managed and not known.managed):
            found[placed.identity] = placed
    return found


def _fields(
    there: Placed, here: Placed, shapes: Mapping[GroupKind, Shape], has_texts: bool
) -> tuple[Difference, ...]:
    one, other = (normalise(each.obj, has_texts=has_texts) for each in (there, here))
    kind = here.identity.kind
    shape = shape_of(kind)
    if shape is EXACT:
        one, other, shape = without_empty(one), without_empty(other), shapes.get(kind, {})
    found = tuple(each for each in differences(one, other, shape) if not _is_unknown(each))
    if there.managed == here.managed:
        return found
    return (Difference(KEPT_BY, _keeper(there), _keeper(here)), *found)


def _is_unknown(difference: Difference) -> bool:
    """Return whether one side is a text that the dump omits."""
    values = (difference.one, difference.other)
    return TEXT in values and all(isinstance(value, str) for value in values)


def _keeper(placed: Placed) -> str:
    return f"ManagedResource {placed.managed}" if placed.managed else "the operator"
