"""Equality of objects as the API server sees it: defaults, amounts and encodings count as equal.

`with_assigned` keeps, in an update, the values that the same shapes attribute to the server and to
controllers. Not for: other rules of merging a manifest into a live object.
"""

from pergola.kube.equality.assigned import with_assigned
from pergola.kube.equality.defaults import shape_of
from pergola.kube.equality.differences import Difference, differences
from pergola.kube.equality.schemas import shapes_of
from pergola.kube.equality.shapes import EXACT, Shape, same

__all__ = [
    "EXACT",
    "Difference",
    "Shape",
    "differences",
    "same",
    "shape_of",
    "shapes_of",
    "with_assigned",
]
