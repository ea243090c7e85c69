"""Ranges of minor versions, in the format of the tables next to this module: `1.33 1.36`, `- -`.

The first column is the first version with a feature, the second the first version without it; `-`
if that version is not supported.
"""

from importlib.resources import files
from typing import NamedTuple

from pergola.api.known.kubernetes_versions import Minor


class Range(NamedTuple):
    """Versions from `since` until before `until`; None means unbounded."""

    since: Minor | None
    until: Minor | None

    def __contains__(self, version: object) -> bool:
        if not isinstance(version, Minor):
            return False
        return (self.since is None or version >= self.since) and (
            self.until is None or version < self.until
        )

    def __str__(self) -> str:
        bounds = []
        if self.since is not None:
            bounds.append(f">= {self.since}")
        if self.until is not None:
            bounds.append(f"< {self.until}")
        return ", ".join(bounds) or "all versions"


def rows(name: str) -> list[list[str]]:
    """Return the rows of a table next to this module, each split into columns."""
    text = files(__package__).joinpath(name).read_text()
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def range_of(since: str, until: str) -> Range:
    """Return the range that two columns describe."""
    return Range(minor_of(since), minor_of(until))


def minor_of(column: str) -> Minor | None:
    """Return the version in a column, or None for `-`."""
    if column == "-":
        return None
    major, _, minor = column.partition(".")
    return Minor(int(major), int(minor))
