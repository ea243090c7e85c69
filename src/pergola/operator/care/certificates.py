"""Certificates that expire soon although they should have been renewed."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.conditions import timestamp
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.bundle import BundleError
from pergola.bundle.names import content
from pergola.garden.landscape import NAMESPACE
from pergola.health import CareFailure
from pergola.kube.client import Client
from pergola.operator.care.components import bounded
from pergola.operator.rotation.ages import MANAGED
from pergola.operator.run.observed import WILDCARD
from pergola.pki import CertificateError, read_certificate
from pergola.secrets_manager import ManagedSecret

EXPIRING: Final = "CertificatesExpiring"
_LATE: Final = timedelta(days=5)
_SHARE: Final = 10


class Lifetime(NamedTuple):
    """The lifetime of a credential.

    Attributes:
        is_own: Whether the operator renews it.
    """

    key: Key
    issued: datetime
    until: datetime
    is_own: bool


class Credentials(NamedTuple):
    """The Secrets with the credentials of a Garden.

    Attributes:
        own: The metadata of those that the operator generates.
        provided: The wildcard certificates that users provide.
    """

    own: list[JsonObject]
    provided: list[JsonObject]

    @property
    def lifetimes(self) -> list[Lifetime]:
        """All lifetimes, without unreadable ones."""
        return [*own_lifetimes(self.own), *provided_lifetimes(self.provided)]


async def read_credentials(client: Client) -> Credentials:
    """Read the Secrets in the runtime cluster.

    Raises:
        KubeError: The cluster refused, or did not answer.
    """
    return Credentials(
        await client.list(SECRET, NAMESPACE, labels=MANAGED, metadata_only=True),
        await client.list(SECRET, NAMESPACE, labels=WILDCARD),
    )


def own_lifetimes(secrets: Iterable[JsonObject]) -> Iterator[Lifetime]:
    """Yield the lifetimes of the operator's credentials, without replaced ones.

    Args:
        secrets: The Secrets of the secrets manager; their metadata is enough.
    """
    newest: dict[str, ManagedSecret] = {}
    for secret in (ManagedSecret(obj, {}) for obj in secrets):
        known = newest.get(secret.name)
        if known is None or known.age_rank < secret.age_rank:
            newest[secret.name] = secret
    for secret in newest.values():
        if secret.issued_at is not None and secret.valid_until is not None:
            yield Lifetime(Key.of(secret.obj), secret.issued_at, secret.valid_until, is_own=True)


def provided_lifetimes(secrets: Iterable[JsonObject]) -> Iterator[Lifetime]:
    """Yield the lifetimes of user-provided certificates, without unreadable ones."""
    for secret in secrets:
        try:
            found = read_certificate(content(secret).get("tls.crt", b""))
        except (BundleError, CertificateError):
            continue  # the reconciliation reports it
        yield Lifetime(
            Key.of(secret), found.not_valid_before_utc, found.not_valid_after_utc, is_own=False
        )


def check_certificates(lifetimes: Iterable[Lifetime], now: datetime) -> CareFailure | None:
    """Return which credentials should have been renewed already, or None."""
    late = [_problem(each) for each in sorted(lifetimes) if is_late(each, now)]
    return CareFailure(EXPIRING, bounded(late)) if late else None


def is_late(lifetime: Lifetime, now: datetime) -> bool:
    """Return whether a credential should have been renewed already."""
    return now > lifetime.until - _notice(lifetime)


def _notice(lifetime: Lifetime) -> timedelta:
    """Return how long before expiry a credential counts as late; renewal is due much earlier."""
    return min(_LATE, (lifetime.until - lifetime.issued) / _SHARE)


def _problem(lifetime: Lifetime) -> str:
    remedy = "the operator should have renewed it" if lifetime.is_own else "replace it"
    return f"Secret {lifetime.key} expires at {timestamp(lifetime.until)}: {remedy}"
