"""Formats of AWS ids: `subnet-0123456789abcdef0` and the like."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, invalid

VPC: Final = "vpc"
SUBNET: Final = "subnet"
SECURITY_GROUP: Final = "sg"
ELASTIC_IP: Final = "eipalloc"
FILE_SYSTEM: Final = "fs"

_LONGEST: Final = 255
_PATTERNS: Final = {
    prefix: re.compile(f"{prefix}-[a-z0-9]+")
    for prefix in (VPC, SUBNET, SECURITY_GROUP, ELASTIC_IP, FILE_SYSTEM)
}


def check_id(path: str, value: str | None, prefix: str) -> Iterator[Cause]:
    """Yield a finding if a text cannot be an id; None is absent."""
    if value is None:
        return
    pattern = _PATTERNS[prefix]
    if not pattern.fullmatch(value):
        yield invalid(path, value, f"does not match ^{pattern.pattern}$")
    if len(value) > _LONGEST:
        yield invalid(path, value, f"must have at most {_LONGEST} characters")
