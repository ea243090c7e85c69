"""Annotations of Shoots with which the driver for volumes does not start on any node.

The original passes them on as they are, so these are warnings.
"""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, forbidden, invalid
from pergola.api.objects import JsonObject, annotations_of
from pergola.providers.aws.config import GROUP

_LIMIT: Final = f"{GROUP}/volume-attach-limit"
_RESERVED: Final = f"{GROUP}/reserved-volume-attachments"
_LEGACY_XFS: Final = f"{GROUP}/legacy-xfs"
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")
_BOOLEANS: Final = frozenset(
    ("1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False")
)
"""The spellings of booleans that Go accepts."""
_PATH: Final = "metadata.annotations"
_EFFECT: Final = "the driver for volumes does not start on nodes"


def annotation_hints(shoot: JsonObject) -> Iterator[Cause]:
    """Yield what is wrong with annotations that become arguments of the driver."""
    annotations = {name: str(text) for name, text in annotations_of(shoot).items()}
    for name in (_LIMIT, _RESERVED):
        value = annotations.get(name)
        if value and _NUMBER.fullmatch(value) is None:
            yield invalid(f"{_PATH}[{name}]", value, f"must be a number: {_EFFECT}")
    if annotations.get(_LIMIT) and annotations.get(_RESERVED):
        yield forbidden(
            f"{_PATH}[{_RESERVED}]", f"must not be set together with {_LIMIT}: {_EFFECT}"
        )
    value = annotations.get(_LEGACY_XFS)
    if value and value not in _BOOLEANS:
        yield invalid(f"{_PATH}[{_LEGACY_XFS}]", value, f"must be true or false: {_EFFECT}")
