"""Formats of AWS ids: `subnet-0123456789abcdef0` and the like."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, invalid, required

VPC: Final = "vpc"
SUBNET: Final = "subnet"
SECURITY_GROUP: Final = "sg"
ELASTIC_IP: Final = "eipalloc"
FILE_SYSTEM: Final = "fs"
SNAPSHOT: Final = "snap"
CAPACITY_RESERVATION: Final = "cr"

_LONGEST: Final = 255
_PATTERNS: Final = {
    prefix: re.compile(f"{prefix}-[a-z0-9]+")
    for prefix in (
        VPC,
        SUBNET,
        SECURITY_GROUP,
        ELASTIC_IP,
        FILE_SYSTEM,
        SNAPSHOT,
        CAPACITY_RESERVATION,
    )
}


def check_id(path: str, value: str | None, prefix: str) -> Iterator[Cause]:
    """Yield a finding if a text cannot be an id; None is absent."""
    yield from check_text(path, value, _PATTERNS[prefix])


def check_text(
    path: str, value: str | None, pattern: re.Pattern[str], *, longest: int = _LONGEST
) -> Iterator[Cause]:
    """Yield a finding if a text is empty, too long, or does not match; None is absent."""
    if value is None:
        return
    if not value:
        yield required(path, "must not be empty")
    elif not pattern.fullmatch(value):
        yield invalid(path, value, f"does not match ^{pattern.pattern}$")
    if len(value) > longest:
        yield invalid(path, value, f"must have at most {longest} characters")
