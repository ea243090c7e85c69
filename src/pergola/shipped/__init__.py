"""The files that ship with Pergola: its examples and its Helm charts.

A checkout has them at its root, and this package links to them; a wheel has them here. So a path of
this package is valid in both.
"""

from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parent / "examples"
"""The folder of examples, which the documentation calls `examples`."""
CHARTS: Final = Path(__file__).parent / "charts"
"""The folder of Helm charts, which the documentation calls `charts`."""

__all__ = ["CHARTS", "EXAMPLES"]
