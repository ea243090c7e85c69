"""Which examples use a public name, for the reference of the library: read from their source."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tools.declarations import find

ROOT: Final = Path(__file__).parents[1]
EXAMPLES: Final = ROOT / "examples"
FOLDER: Final = EXAMPLES / "library"
"""Each file is about a part of the library; each of its functions is an example."""


class Example(NamedTuple):
    """An example.

    Attributes:
        path: of its file, from the root of the repository.
        name: of its function; empty for a whole file outside of the folder.
        source: of the function.
    """

    path: str
    name: str = ""
    source: str = ""

    @property
    def title(self) -> str:
        """The text of links to it."""
        return self.name.replace("_", " ") or Path(self.path).name


def example_of(room: str, name: str) -> Example | None:
    """Return the example of a public name, preferably one about its package.

    Args:
        room: such as `pergola.kube`.
    """
    definition = find(room, name)
    found = _used().get((definition.module, name), []) if definition else []
    about = (each for each in found if Path(each.path).stem in room.split("."))
    return next(about, next(iter(found), None))


@cache
def _used() -> dict[tuple[str, str], list[Example]]:
    """Return the examples of each name, by where it is defined: one for each file."""
    found: dict[tuple[str, str], list[Example]] = {}
    own = sorted(FOLDER.glob("*.py"))
    others = sorted({*EXAMPLES.rglob("*.py")} - {*own})
    for path in [*own, *others]:
        text = path.read_text()
        tree = ast.parse(text)
        parts = (
            [*_functions(path, text, tree)] if path in own else [(Example(_relative(path)), tree)]
        )
        for local, origin in _imported(tree):
            for example, part in parts:
                if any(isinstance(node, ast.Name) and node.id == local for node in ast.walk(part)):
                    found.setdefault(origin, []).append(example)
                    break
    return found


def _functions(path: Path, text: str, tree: ast.Module) -> Iterator[tuple[Example, ast.AST]]:
    """Yield the examples of a file, then what stands beside them as a whole."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            source = ast.get_source_segment(text, node) or ""
            yield Example(_relative(path), node.name, source), node
    yield Example(_relative(path)), tree


def _imported(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the names that a file imports from Pergola, with where each is defined."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pergola"):
            for alias in node.names:
                definition = find(node.module or "", alias.name)
                if definition is not None:
                    yield alias.asname or alias.name, (definition.module, alias.name)


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))
