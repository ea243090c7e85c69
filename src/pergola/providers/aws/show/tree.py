"""The drawing for a terminal. Pure."""

from collections.abc import Iterator

from pergola.providers.aws.show.things import Thing


def tree(root: Thing) -> str:
    """Return one line for each resource, below the one that contains it."""
    return "\n".join([_line(root), *_lines(root, "")]) + "\n"


def _lines(thing: Thing, indent: str) -> Iterator[str]:
    for part in thing.parts:
        is_last = part is thing.parts[-1]
        yield f"{indent}{'└── ' if is_last else '├── '}{_line(part)}"
        yield from _lines(part, f"{indent}{'    ' if is_last else '│   '}")


def _line(thing: Thing) -> str:
    return f"{thing.title} [{thing.owner}]" if thing.owner else thing.title
