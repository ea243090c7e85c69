"""The times at which credentials are renewed."""

from datetime import UTC, datetime, timedelta

import pytest

from pergola.secrets_manager.lifetime import default_validity, initiation_times, is_renewal_due
from pergola.secrets_manager.managed import ManagedSecret, moment

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def secret(
    name: str = "x",
    *,
    validity: timedelta | None = None,
    percent: str = "",
    initiated: str = "",
    created: datetime = NOW,
) -> ManagedSecret:
    labels = {
        "name": name,
        "issued-at-time": str(int(NOW.timestamp())),
        "last-rotation-initiation-time": initiated,
    }
    if validity is not None:
        labels["valid-until-time"] = str(int((NOW + validity).timestamp()))
    if percent:
        labels["renew-after-validity-percentage"] = percent
    metadata = {
        "name": name,
        "labels": labels,
        "creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return ManagedSecret({"metadata": metadata}, {})


@pytest.mark.parametrize(
    ("found", "due"),
    [
        (secret(validity=100 * DAY), 80 * DAY),
        (secret(validity=30 * DAY), 20 * DAY),  # ten days before expiry, earlier than 24 days
        (secret(validity=30 * DAY, percent="50"), 15 * DAY),
        (secret(validity=10 * DAY), 8 * DAY),  # the ten days do not count for short lives
        (secret(validity=timedelta(minutes=10)), timedelta(minutes=8)),
    ],
)
def test_a_credential_is_renewed_after_80_percent_or_ten_days_before_expiry(
    found: ManagedSecret, due: timedelta
) -> None:
    assert not is_renewal_due(found, NOW + due)
    assert is_renewal_due(found, NOW + due + timedelta(seconds=1))


@pytest.mark.parametrize("text", ["x", "", "-1", "1.5", "٣"])
def test_a_label_that_is_not_a_number_counts_as_absent(text: str) -> None:
    found = secret(validity=100 * DAY, percent=text)

    assert not is_renewal_due(found, NOW + 80 * DAY)
    assert is_renewal_due(found, NOW + 81 * DAY)


@pytest.mark.parametrize(
    ("begin", "end"),
    [((2026, 5, 31), (2036, 5, 31)), ((2028, 2, 29), (2038, 3, 1))],
)
def test_a_validity_is_ten_years_by_default(
    begin: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    now = datetime(*begin, tzinfo=UTC)

    assert now + default_validity(now) == datetime(*end, tzinfo=UTC)


def test_credentials_that_never_expire_are_never_due() -> None:
    assert not is_renewal_due(secret(), NOW + 36500 * DAY)


def test_the_newest_secret_of_a_name_has_the_start_of_its_rotation() -> None:
    older = secret("a", initiated="1")
    newer = secret("a", initiated="2", created=NOW + DAY)
    expiring = secret("b", initiated="3", validity=30 * DAY)

    times = initiation_times([newer, older, expiring], NOW + 25 * DAY)

    assert times == {"a": "2", "b": str(int((NOW + 25 * DAY).timestamp()))}


def test_the_later_rotation_is_the_newer_of_two_secrets_of_the_same_second() -> None:
    assert initiation_times([secret("a", initiated="2"), secret("a", initiated="1")], NOW) == {
        "a": "2"
    }


@pytest.mark.parametrize("text", [None, "", "x", "-1", "1.5", "²", "9" * 12, "9" * 20, "9" * 63])
def test_a_label_that_is_no_time_counts_as_absent(text: str | None) -> None:
    assert moment(text) is None


@pytest.mark.parametrize("percent", ["9" * 12, "9" * 63])
def test_a_percentage_beyond_all_times_means_the_expiry(percent: str) -> None:
    renewed_late = secret(validity=10 * DAY, percent=percent)
    assert not is_renewal_due(renewed_late, NOW + 9 * DAY)
    assert is_renewal_due(renewed_late, NOW + 11 * DAY)


def test_a_label_has_the_seconds_since_1970() -> None:
    assert moment(str(int(NOW.timestamp()))) == NOW
