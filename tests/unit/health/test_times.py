"""Points in time in live objects, which anybody may have written."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.health.times import read_time


@pytest.mark.parametrize(
    "text", ["2026-11-29T12:00:00Z", "2026-11-29T12:00:00.5Z", "2026-11-29T13:00:00+01:00"]
)
def test_a_time_is_read(text: str) -> None:
    time = read_time(text)

    assert time is not None
    assert time.replace(microsecond=0) == datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        *(None, 0, "", "now", "2026-11-29", "2026-11-29T12:00:00", "2026-02-30T12:00:00Z"),
        # In UTC, they are in years that do not exist.
        *("9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00"),
    ],
)
def test_a_value_that_is_not_a_time_is_not_read(value: object) -> None:
    assert read_time(value) is None


@given(st.datetimes(), st.integers(-23, 23), st.integers(0, 59))
def test_every_time_can_be_converted_to_utc(time: datetime, hours: int, minutes: int) -> None:
    found = read_time(f"{time.replace(microsecond=0).isoformat()}{hours:+03}:{minutes:02}")

    assert found is None or found.astimezone(UTC) == found
