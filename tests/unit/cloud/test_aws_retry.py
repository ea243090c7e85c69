"""Retries of requests."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.cloud.aws import Retry
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
def test_a_request_that_may_have_succeeded_is_retried_only_if_it_is_a_read(
    error: CloudError, operation: str, again: bool
) -> None:
    assert (wait(error, operation) is not None) is again


def test_attempts_are_limited() -> None:
    assert wait(SLOW_DOWN, "DescribeVpcs", 3) is not None
    assert wait(SLOW_DOWN, "DescribeVpcs", 4) is None


@given(attempt=st.integers(1, 50), seed=st.integers())
def test_waits_double_up_to_a_limit_with_jitter(attempt: int, seed: int) -> None:
    retry = Retry(attempts=100, first_seconds=0.5, longest_seconds=20)
    found = retry.wait(SLOW_DOWN, "DescribeVpcs", attempt, random.Random(seed))  # noqa: S311 - a test
    assert found is not None
    longest = min(20.0, 0.5 * 2 ** (attempt - 1))
    assert longest / 2 <= found <= longest
