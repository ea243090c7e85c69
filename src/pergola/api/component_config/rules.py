"""Rules for durations that configurations share."""

from collections.abc import Iterator
from datetime import timedelta

from pergola.api.durations import format_duration
from pergola.api.schema.validate import Finding


def at_least(value: timedelta, least: timedelta, path: str) -> Iterator[Finding]:
    """Yield a finding if a duration is shorter than allowed."""
    if value < least:
        yield Finding(path, f"must be at least {format_duration(least)}")


def positive(value: timedelta, path: str) -> Iterator[Finding]:
    """Yield a finding if a duration is zero or negative."""
    if value <= timedelta():
        yield Finding(path, "must be greater than 0")
