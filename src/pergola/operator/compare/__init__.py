"""Comparison of a landscape of the original operator with our rendering of the same Garden.

`recorded` reads a dump, `rendered` creates our side, `normalise` removes incomparable parts,
`compare` finds the differences, and `expected` lists those that are decided. All of it is pure.

Not for: reading clusters or files, or printing, which commands do.
"""

from pergola.operator.compare.comparison import Comparison, Differing, compare
from pergola.operator.compare.expected import (
    ABSENT,
    PRESENT,
    Expected,
    expected,
    reason,
    reason_alone,
    shown,
    unexpected,
)
from pergola.operator.compare.placed import Placed
from pergola.operator.compare.recorded import Recorded, RecordError, from_objects, from_rows
from pergola.operator.compare.rendered import landscape_of, rendered

__all__ = [
    "ABSENT",
    "PRESENT",
    "Comparison",
    "Differing",
    "Expected",
    "Placed",
    "RecordError",
    "Recorded",
    "compare",
    "expected",
    "from_objects",
    "from_rows",
    "landscape_of",
    "reason",
    "reason_alone",
    "rendered",
    "shown",
    "unexpected",
]
