"""Renewal of certificates keeps late readers of the bundle trusting the served certificate."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from pergola.pki import (
    SETTLE,
    Identity,
    Plan,
    advance,
    next_change,
    read_bundle,
    read_certificate,
    signed_by,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
PLAN = Plan("server", ("localhost", "server.garden.svc"))


def is_trusted(identity: Identity, bundle: bytes, now: datetime) -> bool:
    """Return whether a client with this bundle accepts the served certificate."""
    served = read_certificate(identity.server.public)
    return any(
        signed_by(served, authority)
        and authority.not_valid_before_utc <= now < authority.not_valid_after_utc
        and served.not_valid_before_utc <= now < served.not_valid_after_utc
        for authority in read_bundle(bundle)
    )


def test_nothing_is_due_right_after_creation() -> None:
    identity = advance(None, PLAN, NOW)
    assert advance(identity, PLAN, NOW + DAY) is identity
    assert is_trusted(identity, identity.bundle, NOW)
    assert next_change(identity) == NOW + 20 * DAY


def test_a_new_authority_is_trusted_before_it_signs_and_the_old_one_until_it_ends() -> None:
    first = advance(None, PLAN, NOW)
    due = next_change(first)

    announced = advance(first, PLAN, due)
    assert announced.server == first.server
    assert len(read_bundle(announced.bundle)) == 2
    assert next_change(announced) == due + SETTLE

    signed = advance(announced, PLAN, due + SETTLE)
    assert signed.server != first.server
    assert is_trusted(signed, announced.bundle, due + SETTLE)
    assert signed.bundle == announced.bundle

    alone = advance(signed, PLAN, NOW + 30 * DAY)
    assert len(read_bundle(alone.bundle)) == 1
    assert is_trusted(alone, alone.bundle, NOW + 30 * DAY)


def test_after_a_sleep_longer_than_all_validities_nothing_waits() -> None:
    later = NOW + 90 * DAY
    awake = advance(advance(None, PLAN, NOW), PLAN, later)
    assert is_trusted(awake, awake.bundle, later)


def test_extra_hosts_get_a_new_certificate_from_the_same_authority() -> None:
    identity = advance(None, PLAN, NOW)
    wider = advance(identity, Plan("server", (*PLAN.hosts, "127.0.0.1")), NOW + DAY)
    assert wider.bundle == identity.bundle
    assert wider.server != identity.server
    assert is_trusted(wider, identity.bundle, NOW + DAY)


def test_unreadable_credentials_are_regenerated() -> None:
    identity = advance(None, PLAN, NOW)
    broken = Identity(identity.bundle, b"nonsense", identity.server)
    renewed = advance(broken, PLAN, NOW)
    assert is_trusted(renewed, renewed.bundle, NOW + DAY)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(min_value=1, max_value=9 * 24), min_size=1, max_size=20))
def test_a_client_that_reads_the_bundle_in_time_always_trusts_the_server(
    hours: list[int],
) -> None:
    identity, now = advance(None, PLAN, NOW), NOW
    for pause in hours:
        now = min(now + timedelta(hours=pause), next_change(identity))
        was = identity
        identity = advance(identity, PLAN, now)
        assert is_trusted(identity, was.bundle, now)
        assert is_trusted(identity, identity.bundle, now)
        assert is_trusted(was, identity.bundle, now)
        assert next_change(identity) > now
