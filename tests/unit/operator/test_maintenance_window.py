"""The daily maintenance window."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from pergola.operator.maintenance_window import Window

HOUR = timedelta(hours=1)


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 2, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "left", "opens"),
    [
        (at(20), None, HOUR),
        (at(21), HOUR, 0 * HOUR),
        (at(21, 30), HOUR / 2, 0 * HOUR),
        (at(22), None, 23 * HOUR),
        (at(0), None, 21 * HOUR),
    ],
)
def test_a_window_opens_every_day(now: datetime, left: timedelta | None, opens: timedelta) -> None:
    window = Window.between("220000+0100", "230000+0100")
    assert (window.left(now), window.opens(now)) == (left, opens)


def test_a_window_may_contain_midnight() -> None:
    window = Window.between("230000+0000", "010000+0000")
    assert window.left(at(0, 30)) == HOUR / 2
    assert window.opens(at(1)) == 22 * HOUR


def test_a_window_with_equal_start_and_end_is_always_open() -> None:
    assert Window.between("000000+0000", "000000+0000").left(at(23)) == HOUR


def test_times_in_other_zones_are_converted() -> None:
    now = at(21, 15).astimezone()
    assert Window.between("230000+0200", "000000+0200").left(now) == HOUR * 3 / 4


@pytest.mark.parametrize("text", ["", "2200", "220000", "250000+0000", "soon"])
def test_a_malformed_time_is_reported_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{text}" is not a time of the day such as')):
        Window.between(text, "230000+0000")
