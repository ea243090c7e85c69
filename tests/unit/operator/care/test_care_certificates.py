"""Certificates that should have been replaced by now."""

import base64
from datetime import UTC, datetime, timedelta

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject, Key
from pergola.health import CareFailure
from pergola.operator.care.extras import (
    Lifetime,
    check_certificates,
    check_extension_resources,
    lifetimes_of,
)
from pergola.pki import Authority

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def lifetime(days: float, left: timedelta, *, is_own: bool = True) -> Lifetime:
    until = NOW + left
    return Lifetime(Key("garden", "ca-0123abcd"), until - days * DAY, until, is_own)


def secret(
    name: str, config: str, *, issued: datetime = NOW, until: datetime | None = None
) -> JsonObject:
    times = {"issued-at-time": str(int(issued.timestamp()))}
    if until is not None:
        times["valid-until-time"] = str(int(until.timestamp()))
    return {
        "metadata": {
            "name": name,
            "namespace": "garden",
            "creationTimestamp": timestamp(issued),
            "labels": {"name": config, **times},
        }
    }


def test_credentials_due_for_renewal_are_not_overdue_yet() -> None:
    assert check_certificates([lifetime(30, 4 * DAY)], NOW) is None
    assert check_certificates([lifetime(3650, 6 * DAY)], NOW) is None


def test_credentials_that_were_not_renewed_are_reported() -> None:
    late = lifetime(30, 2 * DAY)
    assert check_certificates([late, lifetime(30, 20 * DAY)], NOW) == CareFailure(
        "CertificatesExpiring",
        f"Secret garden/ca-0123abcd expires at {timestamp(late.until)}: "
        "the operator should have renewed it",
    )
    assert check_certificates([lifetime(3650, 4 * DAY)], NOW) is not None
    assert check_certificates([lifetime(30, -DAY)], NOW) is not None


def test_expiring_user_provided_certificates_are_reported() -> None:
    found = check_certificates([lifetime(90, 4 * DAY, is_own=False)], NOW)
    assert found is not None
    assert found.message.endswith(": replace it")


def test_only_the_newest_secret_of_a_credential_counts() -> None:
    old = secret("ca-old", "ca", issued=NOW - 30 * DAY, until=NOW - DAY)
    new = secret("ca-new", "ca", until=NOW + 30 * DAY)
    endless = secret("key", "service-account-key")
    assert lifetimes_of([new, old, endless], []) == [
        Lifetime(
            Key("garden", "ca-new"),
            NOW,
            NOW + 30 * DAY,
            is_own=True,
            renewal=NOW + 20 * DAY,
            name="ca",
        )
    ]


def test_the_lifetime_of_a_user_provided_certificate_is_read_from_it() -> None:
    pem = Authority.create("test", NOW, 90 * DAY).pair.public
    given: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "wildcard", "namespace": "garden"},
        "data": {"tls.crt": base64.b64encode(pem).decode()},
    }
    [found] = lifetimes_of([], [given])
    assert found.until == NOW + 90 * DAY
    assert not found.is_own
    broken = {**given, "data": {"tls.crt": "?"}}
    assert lifetimes_of([], [broken, {**given, "data": {}}]) == []


def test_extension_resources_that_are_not_ready_are_listed_in_order() -> None:
    def record(name: str, state: str) -> JsonObject:
        return {
            "kind": "DNSRecord",
            "metadata": {"name": name, "namespace": "garden", "generation": 1},
            "status": {"observedGeneration": 1, "lastOperation": {"state": state}},
        }

    good = record("good", "Succeeded")
    assert check_extension_resources([good], "DNSRecordsUnhealthy") is None
    found = [record("b", "Error"), good, record("a", "Processing")]
    assert check_extension_resources(found, "DNSRecordsUnhealthy") == CareFailure(
        "DNSRecordsUnhealthy",
        "DNSRecord garden/a: last operation is Processing, expected Succeeded; "
        "DNSRecord garden/b: last operation is Error, expected Succeeded",
    )
