"""The priority of API versions: `v2` before `v1`, and both before `v3beta1` and `v3alpha2`."""

import re
from collections.abc import Iterable
from typing import Final

_VERSION: Final = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?")
_STAGES: Final = {"alpha": 1, "beta": 2, None: 3}


def newest(versions: Iterable[str]) -> str:
    """Return the version with the highest priority; malformed ones come last, by name.

    Raises:
        ValueError: there are no versions.
    """
    return min(versions, key=_rank)


def _rank(version: str) -> tuple[int, int, int, str]:
    found = _VERSION.fullmatch(version)
    if found is None:
        return 0, 0, 0, version
    major, stage, minor = found.groups()
    return -_STAGES[stage], -int(major), -int(minor or 0), version
