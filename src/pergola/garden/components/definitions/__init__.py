"""CustomResourceDefinitions of other projects, which a Garden's clusters need (spec 20 §11).

Each group is one file: a JSON list, compressed with Brotli. `NOTICE.md` says where they come from,
and `tools/definitions.py` writes them. Not for: kinds of Pergola's own API (`pergola.api`).
"""

from pergola.garden.components.definitions.groups import GROUPS, SHOOT_EXTENSIONS, load

__all__ = ["GROUPS", "SHOOT_EXTENSIONS", "load"]
