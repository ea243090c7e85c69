"""Equality of objects as the API server sees it: defaults, amounts and encodings count as equal.

Not for: merging a manifest into a live object, which is the writer's task.
"""

from pergola.kube.equality.defaults import shape_of
from pergola.kube.equality.differences import Difference, differences
from pergola.kube.equality.schemas import shapes_of
from pergola.kube.equality.shapes import EXACT, Shape, same

__all__ = ["EXACT", "Difference", "Shape", "differences", "same", "shape_of", "shapes_of"]
