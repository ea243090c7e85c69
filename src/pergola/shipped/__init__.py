"""The files that ship with Pergola: its examples, Helm charts and documentation.

A checkout has them at its root, and this package links to them; a wheel has them here. So a path of
this package is valid in both.
"""

from pathlib import Path
from typing import Final

EXAMPLES: Final = Path(__file__).parent / "examples"
"""The folder of examples, which the documentation calls `examples`."""
CHARTS: Final = Path(__file__).parent / "charts"
"""The folder of Helm charts, which the documentation calls `charts`."""
DOCS: Final = Path(__file__).parent / "docs"
"""The folder of the documentation, to which examples link."""

__all__ = ["CHARTS", "DOCS", "EXAMPLES"]
