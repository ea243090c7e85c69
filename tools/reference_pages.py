"""Reference pages of the library: one for each public room, from its docstrings."""

import ast
import re
import textwrap
from collections.abc import Iterator
from typing import Final

from tools.declarations import declaration, find, public_names, tree
from tools.examples import example_of

_SECTION: Final = re.compile(r"^(Args|Attributes|Raises|Returns|Yields):$")
_ENTRY: Final = re.compile(r"^(?P<names>[\w*, ]+): (?P<text>.+)$")
_HEADING: Final = re.compile(r"^#+ ", flags=re.MULTILINE)


def room_page(room: str) -> str:
    """Return the page of a room: what it is for, then each public name with its declaration."""
    module = f"pergola.{room}"
    shown: dict[str, str] = {}
    parts = [f"# {module}", markdown(ast.get_docstring(tree(module)) or "")]
    for name in public_names(module):
        definition = find(module, name)
        if definition is None:
            raise SystemExit(f"{module}: __all__ has {name}, but the source does not define it")
        code = "\n".join(declaration(definition, name))
        parts += [f"## {name}", f"```python\n{code}\n```"]
        statement = definition.statement
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(markdown(ast.get_docstring(statement) or ""))
        if isinstance(statement, ast.ClassDef):
            parts.extend(methods(statement))
        parts.append(example(module, name, shown))
    return "\n\n".join(part for part in parts if part) + "\n"


def example(module: str, name: str, shown: dict[str, str]) -> str:
    """Return the example of a name; where an earlier name of the page has the same, say so.

    Args:
        shown: the names with examples so far, by the titles of these.
    """
    found = example_of(module, name)
    if found is None:
        return ""
    if not found.source:
        return f"**Example:** `{found.path}`"
    if found.title in shown:
        return f"**Example:** see `{shown[found.title]}`"
    shown[found.title] = name
    return f"**Example:**\n\n```python\n{found.source}\n```"


def methods(statement: ast.ClassDef) -> Iterator[str]:
    """Yield the descriptions of a class's own public methods."""
    for member in statement.body:
        if not isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(member)
        if text and not member.name.startswith("_"):
            yield f"### {statement.name}.{member.name}"
            yield markdown(text)


def markdown(docstring: str) -> str:
    """Return a docstring in Google style as Markdown: its sections become lists."""
    lines: list[str] = []
    paragraphs = _HEADING.sub("", docstring).split("\n\n")
    for paragraph in paragraphs:
        first, _, rest = paragraph.partition("\n")
        if _SECTION.match(first):
            lines += [f"**{first}**", *entries(textwrap.dedent(rest))]
        else:
            lines.append(paragraph)
    return "\n\n".join(lines)


def entries(text: str) -> Iterator[str]:
    """Yield the entries of a section, as one list."""
    unfolded = re.sub(r"\n\s+", " ", text)
    found = [_ENTRY.match(line) for line in unfolded.splitlines()]
    if not all(found):
        yield unfolded
        return
    yield "\n".join(f"- `{match['names']}`: {match['text']}" for match in found if match)
