"""Tags to ignore must not be those by which clusters are identified (spec 30 §1.4, V19)."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, invalid
from pergola.providers.aws.config import IgnoreTags
from pergola.providers.aws.validation.identifiers import check_text

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
        meets = _NAME.startswith(prefix) or any(_meet(prefix, each) for each in _RESERVED)
        if prefix and meets:
            yield invalid(
                path, prefix, f"must not match {_described()}: clusters are found by those"
            )


def _meet(one: str, other: str) -> bool:
    """Return whether any key begins with both."""
    return one.startswith(other) or other.startswith(one)


def _key(path: str, key: str) -> Iterator[Cause]:
    yield from check_text(path, key, _KEY, longest=_LONGEST)


def _described() -> str:
    return f'"{_NAME}", nor begin with {" or ".join(map(repr, _RESERVED))}'.replace("'", '"')
