"""Retries of requests, and the rate limit between them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.cloud.aws import Pace, Retry
from pergola.cloud.errors import CloudError, NotFound, Throttled, Unreachable

LOST = Unreachable("no answer", may_have_happened=True)
REFUSED = Unreachable("connection refused")
SLOW_DOWN = Throttled("slow down")


def wait(error: CloudError, operation: str, attempt: int = 1) -> float | None:
    return Retry(attempts=4).wait(error, operation, attempt, random.Random(1))  # noqa: S311 - a test


@pytest.mark.parametrize(
    ("error", "operation", "again"),
    [
        (SLOW_DOWN, "DescribeVpcs", True),
        (SLOW_DOWN, "CreateVpc", True),
        (REFUSED, "CreateVpc", True),
        (LOST, "DescribeVpcs", True),
        (LOST, "GetCallerIdentity", True),
        (LOST, "CreateVpc", False),
        (LOST, "DeleteVpc", False),
        (NotFound("none"), "DescribeVpcs", False),
    ],
)
def test_what_may_have_happened_is_asked_again_only_if_it_changes_nothing(
    error: CloudError, operation: str, again: bool
) -> None:
    assert (wait(error, operation) is not None) is again


def test_attempts_end() -> None:
    assert wait(SLOW_DOWN, "DescribeVpcs", 3) is not None
    assert wait(SLOW_DOWN, "DescribeVpcs", 4) is None


@given(attempt=st.integers(1, 50), seed=st.integers())
def test_waits_double_up_to_a_limit_and_are_spread(attempt: int, seed: int) -> None:
    retry = Retry(attempts=100, first_seconds=0.5, longest_seconds=20)
    found = retry.wait(SLOW_DOWN, "DescribeVpcs", attempt, random.Random(seed))  # noqa: S311 - a test
    assert found is not None
    longest = min(20.0, 0.5 * 2 ** (attempt - 1))
    assert longest / 2 <= found <= longest


def test_nothing_waits_until_aws_throttles() -> None:
    pace = Pace()
    assert [pace.reserve(10.0) for _ in range(3)] == [0, 0, 0]
    pace.learn(NotFound("none"))
    assert pace.reserve(10.0) == 0


def test_throttled_requests_follow_each_other_at_a_distance() -> None:
    pace = Pace()
    pace.learn(SLOW_DOWN)
    waits = [pace.reserve(10.0) for _ in range(3)]
    assert waits == pytest.approx([0, 0.1, 0.2])
    pace.learn(SLOW_DOWN)
    assert pace.reserve(20.0) == 0
    assert pace.reserve(20.0) == pytest.approx(0.2)


def test_the_distance_has_a_limit_and_goes_away_with_success() -> None:
    pace = Pace()
    for _ in range(20):
        pace.learn(SLOW_DOWN)
    pace.reserve(0.0)
    assert pace.reserve(0.0) == pytest.approx(5.0)
    for _ in range(40):
        pace.learn(None)
    pace.reserve(100.0)
    assert pace.reserve(100.0) == 0
