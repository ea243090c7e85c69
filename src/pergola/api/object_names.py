"""Validation of object names, as segments of a request's path.

A name that is empty, or that a server reads as several segments, addresses something else: the
whole collection, another object, a subresource. The API server refuses such names for every kind;
only the server knows the other rules of each kind.
"""

from typing import Final

_LONGEST: Final = 2048  # bytes; no kind's own limit is above this, and a longer path is refused
_DOTS: Final = (".", "..")
_SEPARATORS: Final = "/%"


def name_problem(name: object) -> str | None:
    """Return why no object can have this name, e.g. `is empty`; None if the name is possible."""
    if name is None:
        return "is missing"
    if not isinstance(name, str):
        return f"must be a string, not {type(name).__name__}"
    if not name:
        return "is empty"
    if name in _DOTS:
        return f"must not be {name!r}"
    if found := next((mark for mark in _SEPARATORS if mark in name), None):
        return f"must not contain {found!r}"
    return _encoding_problem(name)


def _encoding_problem(name: str) -> str | None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return f"is longer than {_LONGEST} bytes" if size > _LONGEST else None
