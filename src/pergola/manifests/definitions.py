"""CustomResourceDefinitions of other projects, kept as compressed files.

Each group is one file: a JSON list, compressed with Brotli. `tools/definitions.py` writes the
files, and a notice beside them says where they come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable

import brotli
import orjson

from pergola.api.objects import JsonObject, name_of


class DefinitionsMissing(Exception):
    """A file lacks definitions of its group; the text names them."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Definitions that are applied together.

    Attributes:
        key: its name, and that of its file.
        kinds: the plural names of the kinds, by API group.
    """

    key: str
    kinds: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> frozenset[str]:
        """The names of the definitions."""
        return frozenset(
            f"{plural}.{group}" for group, plurals in self.kinds.items() for plural in plurals
        )

    @property
    def file_name(self) -> str:
        """The name of the file with them."""
        return f"{self.key}.json.br"


def load_definitions(group: Group, directory: Traversable) -> tuple[JsonObject, ...]:
    """Return the definitions of a group.

    They are not kept, because that would cost much more memory than time: decompressing and parsing
    the 62 definitions of a Garden takes 0.05 s, keeping them 23 MB.

    Raises:
        DefinitionsMissing: the file does not have all of them.
    """
    file = directory / group.file_name
    found = tuple(orjson.loads(brotli.decompress(file.read_bytes())))
    missing = group.names - {name_of(definition) for definition in found}
    if missing:
        raise DefinitionsMissing(f"{file.name} lacks {', '.join(sorted(missing))}")
    return found
