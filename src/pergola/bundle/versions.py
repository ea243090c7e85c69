"""Versions, and the version ranges of image vectors.

Ranges have the syntax of Go's semver libraries and npm: `>= 1.30, < 1.32`, `1.30.x`, `~1.30`.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from pergola.bundle.errors import BundleError

_Identifiers: TypeAlias = tuple[tuple[int, int, str], ...]

_NUMBER: Final = "[0-9]{1,9}"
_PART: Final = rf"(?:{_NUMBER}|[xX*])"
_SUFFIX: Final = r"(?:-(?P<prerelease>[0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
_VERSION: Final = re.compile(
    rf"v?(?P<major>{_NUMBER})(?:\.(?P<minor>{_NUMBER})(?:\.(?P<patch>{_NUMBER}))?)?{_SUFFIX}"
)
_COMPARATOR: Final = re.compile(
    rf"\s*(?P<operator>!=|==|<=|=<|>=|=>|~>|[=<>~^])?\s*"
    rf"(?P<text>v?(?P<major>{_PART})(?:\.(?P<minor>{_PART})(?:\.(?P<patch>{_PART}))?)?{_SUFFIX})"
    r"(?=$|[\s,])\s*(?P<separator>,?)"
)
_HYPHEN: Final = re.compile(r"\s*(\S+)\s+-\s+(\S+)\s*")
_SAME: Final = {"==": "=", "=<": "<=", "=>": ">=", "~>": "~"}


class VersionError(BundleError):
    """A text is not a version or version range; the message quotes it."""


class Version(NamedTuple):
    """A version; versions compare as semantic versions, without build metadata.

    Attributes:
        stage: 1 for a release, 0 for its prereleases.
        identifiers: the parts of the prerelease, in a comparable form.
    """

    major: int
    minor: int = 0
    patch: int = 0
    stage: int = 1
    identifiers: _Identifiers = ()

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Parse `v1.30.2-rc.1+build`, `1.30.2` or `1.30`; missing numbers count as 0.

        Raises:
            VersionError: the text is not a version.
        """
        found = _VERSION.fullmatch(text.strip())
        if found is None:
            raise VersionError(f'"{text}" is not a version such as 1.30.2')
        return _version(found)

    @property
    def release(self) -> "Version":
        """The version without its prerelease."""
        return Version(self.major, self.minor, self.patch)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A set of versions: all comparators of at least one group must hold.

    A comparator with a partial version covers all versions that start with it: `<= 1.30` includes
    1.30.9. One without a prerelease ignores prereleases: for `>= 1.30`, a vendor's version
    1.30.2-gke.5 counts as 1.30.2.
    """

    text: str = field(compare=False)
    groups: tuple[tuple["_Comparator", ...], ...]

    @classmethod
    def parse(cls, text: str) -> "VersionRange":
        """Parse comparators separated by commas or spaces, and alternatives separated by `||`.

        Raises:
            VersionError: the text is not a version range; the message contains the position.
        """
        return _parse_range(text)

    def __contains__(self, version: Version) -> bool:
        return any(_holds(group, version) for group in self.groups)


class _Comparator(NamedTuple):
    """Versions from `low` up to, but not including, `high`, or all others if `outside`."""

    low: Version | None
    high: Version | None
    outside: bool = False
    prerelease: bool = False

    def holds(self, version: Version) -> bool:
        within = (self.low is None or self.low <= version) and (
            self.high is None or version < self.high
        )
        return within is not self.outside


def _holds(group: tuple[_Comparator, ...], version: Version) -> bool:
    compared = version if any(c.prerelease for c in group) else version.release
    return all(comparator.holds(compared) for comparator in group)


@lru_cache(maxsize=256)
def _parse_range(text: str) -> VersionRange:
    return VersionRange(text, tuple(_group(part, text) for part in text.split("||")))


def _group(part: str, text: str) -> tuple[_Comparator, ...]:
    if hyphen := _HYPHEN.fullmatch(part):
        part = f">= {hyphen[1]}, <= {hyphen[2]}"
    found, at, more = [], 0, True
    while more:
        match = _COMPARATOR.match(part, at)
        if match is None:
            raise VersionError(
                f'"{text}" is not a version range: "{part[at:].strip()}" is not valid; expected'
                ' is one such as ">= 1.30, < 1.32", "1.30.x" or "~1.30"'
            )
        found.append(_comparator(match))
        at = match.end()
        more = bool(match["separator"] or part[at:].strip())
    return tuple(found)


def _comparator(match: re.Match[str]) -> _Comparator:
    operator = match["operator"] or "="
    operator = _SAME.get(operator, operator)
    known = _numbers(match)
    if not known:
        # A wildcard alone matches all versions: none is above, below or outside.
        return _Comparator(None, None, outside=operator in ("<", ">", "!="))
    low = _version(match) if len(known) == 3 else _of(known)
    high = _behind(low, known)
    prerelease = low.stage == 0
    match operator:
        case "<":
            return _Comparator(None, low, prerelease=prerelease)
        case "<=":
            return _Comparator(None, high, prerelease=prerelease)
        case ">":
            return _Comparator(high, None, prerelease=prerelease)
        case ">=":
            return _Comparator(low, None, prerelease=prerelease)
        case "~":
            return _Comparator(low, _next(known[:2]), prerelease=prerelease)
        case "^":
            return _Comparator(low, _next(_compatible(known)), prerelease=prerelease)
    return _Comparator(low, high, outside=operator == "!=", prerelease=prerelease)


def _numbers(match: re.Match[str]) -> list[int]:
    """Return the numbers before the first wildcard."""
    known: list[int] = []
    for part in (match["major"], match["minor"], match["patch"]):
        if part is None or not part.isdigit():
            break
        known.append(int(part))
    return known


def _behind(low: Version, known: list[int]) -> Version:
    """Return the lowest version above all that begin with the known numbers."""
    if len(known) < 3:
        return _next(known)
    # No real version equals it; it only separates a version from the following ones.
    return low._replace(identifiers=(*low.identifiers, (0, -1, "")))


def _next(numbers: list[int]) -> Version:
    return _of([*numbers[:-1], numbers[-1] + 1])


def _of(numbers: list[int]) -> Version:
    major, minor, patch = (*numbers, 0, 0)[:3]
    return Version(major, minor, patch)


def _compatible(known: list[int]) -> list[int]:
    """Return the numbers that must not change: up to the first that is not 0."""
    for count, number in enumerate(known, 1):
        if number:
            return known[:count]
    return known


def _version(match: re.Match[str]) -> Version:
    release = _of([int(match[part] or 0) for part in ("major", "minor", "patch")])
    if match["prerelease"] is None:
        return release
    return release._replace(stage=0, identifiers=_identifiers(match["prerelease"]))


def _identifiers(prerelease: str) -> _Identifiers:
    """Return the parts of a prerelease for comparison: numbers by value, and before words."""
    return tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in prerelease.split(".")
    )
