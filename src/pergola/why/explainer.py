"""Explainers: each covers one kind of subject, and installed packages can add their own."""

import importlib.metadata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.why.answer import Asked, Part
from pergola.why.reading import Reader

ENTRY_POINTS: Final = "pergola.explainers"
"""The entry point group in which packages register their explainers.

The value is an `Explainer`, or a sequence of them: `lakes = "my.package.explain:LAKES"`.
"""


class BrokenExplainer(Exception):
    """An installed package registers an unusable explainer; the text says which one."""


@dataclass(frozen=True, slots=True)
class Explainer:
    """An explainer of the objects that it applies to.

    Attributes:
        name: For error messages.
        applies: Returns whether it has something to say about an object.
        explain: Reads what it needs and returns its part of the answer. It never writes, and does
            not raise if the caller may not read something: `Reader` records that.
    """

    name: str
    applies: Callable[[JsonObject], bool]
    explain: Callable[[Asked, Reader], Awaitable[Part]]


def installed() -> tuple[Explainer, ...]:
    """Return the explainers of installed packages, ordered by name.

    Raises:
        BrokenExplainer: One cannot be imported, or is not an explainer.
    """
    points = sorted(importlib.metadata.entry_points(group=ENTRY_POINTS), key=lambda it: it.name)
    return tuple(each for point in points for each in _loaded(point))


def _loaded(point: importlib.metadata.EntryPoint) -> Sequence[Explainer]:
    try:
        found: object = point.load()
    except Exception as error:  # any error that importing the author's module raises
        text = f"{type(error).__name__}: {error}"
        raise BrokenExplainer(f'explainer "{point.name}" cannot be imported: {text}') from error
    items = found if isinstance(found, Sequence) else (found,)
    explainers = [each for each in items if isinstance(each, Explainer)]
    if len(explainers) != len(items):
        raise BrokenExplainer(f'explainer "{point.name}": {point.value} is not an Explainer')
    return explainers
