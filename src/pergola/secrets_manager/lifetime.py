"""Times of issue, expiry and renewal of credentials (spec 20 §10.2); pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from pergola.pki import read_certificate
from pergola.secrets_manager.configs import SecretConfig
from pergola.secrets_manager.managed import (
    ISSUED_AT,
    RENEW_AT,
    VALID_UNTIL,
    ManagedSecret,
    unix,
)
from pergola.secrets_manager.options import Options

DEFAULT_YEARS: Final = 10
DEFAULT_PERCENT: Final = 80
RENEW_BEFORE: Final = timedelta(days=10)


def default_validity(now: datetime) -> timedelta:
    """Return the time until the same day in ten years; 1 March follows 28 February."""
    try:
        return now.replace(year=now.year + DEFAULT_YEARS) - now
    except ValueError:
        return now.replace(year=now.year + DEFAULT_YEARS, month=3, day=1) - now


def lifetime_labels(
    config: SecretConfig, secret: ManagedSecret, options: Options, now: datetime
) -> dict[str, str]:
    """Return the labels with the times of issue and expiry of a Secret.

    A certificate contains these times. Everything else keeps the time of its first label, from
    which a changed validity is measured.
    """
    labels: dict[str, str] = {}
    if options.renew_at_percent is not None:
        labels[RENEW_AT] = str(options.renew_at_percent)
    if pem := config.certificate(secret.data):
        certificate = read_certificate(pem)
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return labels | {ISSUED_AT: _seconds(begins), VALID_UNTIL: _seconds(ends)}
    issued = secret.issued_at or now
    labels[ISSUED_AT] = _seconds(issued)
    if options.validity is not None:
        labels[VALID_UNTIL] = _seconds(issued + options.validity)
    return labels


def is_renewal_due(secret: ManagedSecret, now: datetime) -> bool:
    """Return whether a Secret is due for regeneration."""
    due = renewal_time(secret)
    return due is not None and now > due


def renewal_time(secret: ManagedSecret) -> datetime | None:
    """Return when a Secret is due for regeneration; None if it never expires.

    It is due after 80 % of its validity (or the percentage in its label), or 10 days before it
    expires, whichever is first. The ten days do not apply to credentials valid for less than 20
    days, which they would renew over and over.
    """
    issued, until = secret.issued_at, secret.valid_until
    if issued is None or until is None:
        return None
    percent = unix(secret.labels.get(RENEW_AT))
    validity = until - issued
    try:
        due = issued + validity * (DEFAULT_PERCENT if percent is None else percent) / 100
    except OverflowError:
        due = until  # the label has a percentage that no time can have
    if validity >= 2 * RENEW_BEFORE:
        due = min(due, until - RENEW_BEFORE)
    return due


def initiation_times(secrets: Iterable[ManagedSecret], now: datetime) -> dict[str, str]:
    """Return the start of each config's current rotation, in Unix seconds, or empty.

    The newest Secret records it; if that Secret is due for renewal, it is now.
    """
    newest: dict[str, ManagedSecret] = {}
    for secret in secrets:
        known = newest.get(secret.name)
        if known is None or secret.age_rank > known.age_rank:
            newest[secret.name] = secret
    return {
        name: _seconds(now) if is_renewal_due(secret, now) else secret.initiated
        for name, secret in newest.items()
    }


def _seconds(time: datetime) -> str:
    return str(int(time.timestamp()))
