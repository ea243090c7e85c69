"""Credentials that have not been rotated for a long time."""

from datetime import UTC, datetime, timedelta

from pergola.health import CareFailure
from pergola.operator.care.credentials import check_credentials

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def issued(name: str, days: float) -> dict[str, str]:
    time = NOW - timedelta(days=days)
    return {"name": name, "issued-at-time": str(int(time.timestamp()))}


def test_credentials_of_the_last_ninety_days_are_recent() -> None:
    assert check_credentials([issued("ca", 90), issued("service-account-key", 1)], NOW) is None


def test_old_credentials_are_reported_with_the_day_of_their_last_rotation() -> None:
    found = check_credentials([issued("service-account-key", 151), issued("ca", 91)], NOW)
    assert found == CareFailure(
        "CredentialsOld",
        "credential ca has not been rotated since 2026-03-02: rotate it; "
        "credential service-account-key has not been rotated since 2026-01-01: rotate it",
    )


def test_the_message_is_the_same_all_day() -> None:
    secrets = [issued("ca", 100)]
    assert check_credentials(secrets, NOW) == check_credentials(secrets, NOW + timedelta(hours=9))


def test_automatically_renewed_credentials_are_not_reported() -> None:
    assert check_credentials([issued("ca-garden-runtime", 400)], NOW) is None
