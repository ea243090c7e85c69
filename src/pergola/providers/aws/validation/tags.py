"""Tags to ignore must not be those by which clusters are identified (spec 30 §1.4, V19)."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, invalid
from pergola.providers.aws.config import IgnoreTags

_NAME: Final = "Name"
_RESERVED: Final = ("kubernetes.io", "gardener.cloud")
_KEY: Final = re.compile(r"[\w +\-=\.:/@]+", re.ASCII)
_LONGEST: Final = 128


def check_tags(ignored: IgnoreTags) -> Iterator[Cause]:
    """Yield findings about the tags to ignore."""
    for index, key in enumerate(ignored.keys):
        path = f"ignoreTags.keys[{index}]"
        yield from _key(path, key)
        if key == _NAME or key.startswith(_RESERVED):
            yield invalid(path, key, f"must not be {_described()}: clusters are found by those")
    for index, prefix in enumerate(ignored.key_prefixes):
        path = f"ignoreTags.keyPrefixes[{index}]"
        yield from _key(path, prefix)
        if prefix and any(_meet(prefix, reserved) for reserved in (_NAME, *_RESERVED)):
            yield invalid(
                path, prefix, f"must not match {_described()}: clusters are found by those"
            )


def _meet(one: str, other: str) -> bool:
    """Return whether any key begins with both."""
    return one.startswith(other) or other.startswith(one)


def _key(path: str, key: str) -> Iterator[Cause]:
    if not 1 <= len(key) <= _LONGEST:
        yield invalid(path, key, f"must have 1 to {_LONGEST} characters")
    if key and not _KEY.fullmatch(key):
        yield invalid(path, key, f"does not match ^{_KEY.pattern}$")


def _described() -> str:
    return f'"{_NAME}", nor begin with {" or ".join(map(repr, _RESERVED))}'.replace("'", '"')
