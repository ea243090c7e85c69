"""`pergola unpack`: writes the examples, charts and documentation of this version."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from pergola.cli.text import say

_CACHES: Final = {"__pycache__", ".pytest_cache"}


class UnpackError(Exception):
    """A file cannot be written; the text gives the reason."""


def unpack(
    *folders: Literal["examples", "charts", "docs"],
    to: Path = Path(),
) -> None:
    """Write the examples, Helm charts and documentation of this version into folders.

    The documentation names files as in a checkout, such as examples/first.yaml. After this command,
    they are there, and links between them work. Existing files with other content are left as they
    are, and reported.

    Parameters
    ----------
    folders
        Write only these.
    to
        The folder in which they are created; the current one by default.
    """
    from pergola.shipped import CHARTS, DOCS, EXAMPLES

    chosen = [each for each in (EXAMPLES, CHARTS, DOCS) if not folders or each.name in folders]
    found = [
        (path, to / source.name / path.relative_to(source))
        for source in chosen
        for path in files_of(source)
    ]
    changed = [target for path, target in found if _differs(path, target)]
    if changed:
        raise UnpackError(
            f"{changed[0]} exists with other content"
            f"{f', and {len(changed) - 1} more files do' if len(changed) > 1 else ''}; "
            "move it away, or choose another folder with --to"
        )
    for path, target in found:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    for source in chosen:
        say(to / source.name)


def files_of(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that belong to a release: no caches of Python and pytest."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not _CACHES & {*path.parts}:
            yield path


def _differs(path: Path, target: Path) -> bool:
    return target.exists() and (not target.is_file() or target.read_bytes() != path.read_bytes())
