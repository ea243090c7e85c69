"""The versions of Kubernetes that Pergola supports (spec 20 §5.4)."""

import re
from typing import Final, NamedTuple

_VERSION: Final = re.compile(
    r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?(?:[-+][0-9A-Za-z.+-]+)?"
)
_OLDEST: Final = 32
_NEWEST: Final = 36


class Minor(NamedTuple):
    """A minor version, such as 1.34."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


SUPPORTED: Final = tuple(Minor(1, minor) for minor in range(_OLDEST, _NEWEST + 1))


class Version(NamedTuple):
    """A version with its patch level, such as 1.34.2, without suffixes."""

    major: int
    minor: int
    patch: int

    @property
    def of_minor(self) -> Minor:
        """The minor version."""
        return Minor(self.major, self.minor)


def parse_version(text: str) -> Version | None:
    """Return the parsed version, such as `1.34`, `1.34.2` or `v1.34.2-rc.1`, or None."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    major, minor, patch = (int(part or 0) for part in found.groups())
    return Version(major, minor, patch)


def tabled(version: Version) -> Minor:
    """Return the nearest minor version that the tables cover."""
    return min(max(version.of_minor, SUPPORTED[0]), SUPPORTED[-1])
