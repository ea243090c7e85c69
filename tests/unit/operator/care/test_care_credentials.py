"""Credentials that have not been rotated for a long time."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from pergola.health import CareFailure
from pergola.operator.care.extras import check_credentials
from pergola.operator.rotation.ages import ages

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def issued(name: str, days: float) -> Mapping[str, str]:
    """Return the labels of a Secret."""
    time = NOW - timedelta(days=days)
    return {"name": name, "issued-at-time": str(int(time.timestamp()))}


def problem(*secrets: Mapping[str, str], now: datetime = NOW) -> CareFailure | None:
    return check_credentials(ages(secrets, now), now)


def test_credentials_of_the_last_ninety_days_are_recent() -> None:
    assert problem(issued("ca", 90), issued("service-account-key", 1)) is None


def test_old_credentials_are_reported_with_the_day_of_their_last_rotation() -> None:
    found = problem(issued("service-account-key", 151), issued("ca", 91))
    assert found == CareFailure(
        "CredentialsOld",
        "credential ca has not been rotated since 2026-03-02: rotate it; "
        "credential service-account-key has not been rotated since 2026-01-01: rotate it",
    )


def test_the_message_is_the_same_all_day() -> None:
    secret = issued("ca", 100)
    assert problem(secret) == problem(secret, now=NOW + timedelta(hours=9))


def test_automatically_renewed_credentials_are_not_reported() -> None:
    assert problem(issued("ca-garden-runtime", 400)) is None
