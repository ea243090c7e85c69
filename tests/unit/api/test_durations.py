from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.durations import DurationError, format_duration, parse_duration

MICROSECOND = timedelta(microseconds=1)
LONGEST = timedelta(microseconds=2**63 // 1000)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0", timedelta()),
        ("+0", timedelta()),
        ("-0", timedelta()),
        ("0s", timedelta()),
        ("1h30m", timedelta(minutes=90)),
        ("1.5h", timedelta(minutes=90)),
        ("-1h", timedelta(hours=-1)),
        ("+1h", timedelta(hours=1)),
        (".5s", timedelta(milliseconds=500)),
        ("5.s", timedelta(seconds=5)),
        ("1h1h", timedelta(hours=2)),
        ("00001s", timedelta(seconds=1)),
        ("2ms", timedelta(milliseconds=2)),
        ("3us", timedelta(microseconds=3)),
        ("3\u00b5s", timedelta(microseconds=3)),
        ("3\u03bcs", timedelta(microseconds=3)),
        ("4000ns", timedelta(microseconds=4)),
        ("0.3333333333333333333h", timedelta(minutes=20)),
        ("1.00000000000000000000000000000001s", timedelta(seconds=1)),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", " 1h", "1h ", "1 h", "3600", "1d", "1w", "1H", "-", "+", ".", ".s", "1.", "s"),
        *("--1s", "1m-1s", "1s1", "1hms", "1e3s", "1,5s", "1\u0663s", "\u0661s", "1h\n", "1_0s"),
        *("9223372036854775808ns", "2562047h47m16.854775808s", "99999999999999999999h"),
        "9" * 10_000 + "h",
    ],
)
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(DurationError, match="invalid duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1d", 'unknown unit "d"'),
        ("3600", "lacks its unit"),
        ("", "it is empty"),
        ("h", "a number is expected"),
        ("300000000h", "longer than 292 years"),
    ],
)
def test_the_error_names_the_problem(text: str, problem: str) -> None:
    with pytest.raises(DurationError, match=problem) as raised:
        parse_duration(text)
    assert raised.value.text == text


@pytest.mark.parametrize("text", ["1ns", "999ns", "0.1us", "0.0000001s"])
def test_a_duration_below_a_microsecond_never_becomes_zero(text: str) -> None:
    assert parse_duration(text) == MICROSECOND
    assert parse_duration(f"-{text}") == -MICROSECOND


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(hours=1), "1h0m0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(minutes=90, milliseconds=500), "1h30m0.5s"),
        (timedelta(milliseconds=100), "100ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7\u00b5s"),
        (timedelta(seconds=1, microseconds=20), "1.00002s"),
        (timedelta(seconds=10), "10s"),
        (timedelta(hours=-1), "-1h0m0s"),
        (timedelta(microseconds=-1), "-1\u00b5s"),
        (timedelta(days=100), "2400h0m0s"),
    ],
)
def test_durations_are_written_as_go_writes_them(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@given(st.timedeltas(-LONGEST + MICROSECOND, LONGEST - MICROSECOND))
def test_written_text_parses_to_the_same_value(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.thorough("fuzz")
@given(st.text("0123456789.hmsnu\u00b5 -+", max_size=12) | st.text(max_size=6))
def test_no_text_raises_an_unexpected_error(text: str) -> None:
    try:
        parse_duration(text)
    except DurationError as error:
        assert error.text == text  # noqa: PT017 - most texts are refused, some are not
