"""Conditions that the original does not have: credentials, backups and DNS records.

Secrets are read from the operator's copies. The reconciliation of the Garden itself waits for the
other objects, so these are listed once an hour and after each operation instead of being watched.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from pergola.api.conditions import timestamp
from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.bundle import BundleError
from pergola.bundle.names import content
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, DNS_RECORD
from pergola.garden.landscape import NAMESPACE
from pergola.health import CareFailure, check_extension
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, UnknownKind
from pergola.operator.care.check import Unable, Verdict, bounded
from pergola.operator.rotation.ages import MANAGED, OLDEST, Age, ages
from pergola.operator.run.observed import WILDCARD
from pergola.pki import CertificateError, read_certificate
from pergola.runtime.clock import Clock
from pergola.secrets_manager import ManagedSecret
from pergola.secrets_manager.lifetime import renewal_time

CERTIFICATES_VALID: Final = "CertificatesValid"
BACKUPS_HEALTHY: Final = "BackupsHealthy"
DNS_RECORDS_HEALTHY: Final = "DNSRecordsHealthy"
CREDENTIALS_ROTATED: Final = "CredentialsRotated"
EXTRAS: Final = (CERTIFICATES_VALID, CREDENTIALS_ROTATED, BACKUPS_HEALTHY, DNS_RECORDS_HEALTHY)

_PERIOD: Final = timedelta(hours=1)
_LATE: Final = timedelta(days=5)
_SHARE: Final = 10


class Extras:
    """The verdicts about these conditions."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._listed: dict[str, Verdict] = {}
        self._listed_at: datetime | None = None
        self._operation: object = None

    async def observe(self, garden: JsonObject) -> dict[str, Verdict]:
        """Return the verdicts, except on conditions without a subject.

        Verdicts on extension resources are as of their last list.
        """
        now, operation = self._clock.now(), map_at(garden, "status", "lastOperation")
        is_due = self._listed_at is None or now - self._listed_at >= _PERIOD
        is_changed = operation != self._operation and operation.get("state") != "Processing"
        if is_due or is_changed:
            backups, records = (BACKUP_BUCKET.gvk, BACKUP_ENTRY.gvk), (DNS_RECORD.gvk,)
            self._listed = {
                **await self._resources(BACKUPS_HEALTHY, "BackupsUnhealthy", backups),
                **await self._resources(
                    DNS_RECORDS_HEALTHY, "DNSRecordsUnhealthy", records, namespace=NAMESPACE
                ),
            }
            self._listed_at, self._operation = now, operation
        return {**await self._secrets(now), **self._listed}

    async def _secrets(self, now: datetime) -> dict[str, Verdict]:
        """Return the verdicts about certificates and credentials, if there are any."""
        try:
            own, provided = await read_credentials(self._client)
        except KubeError as error:
            unable = Unable(f"failed listing Secrets in namespace {NAMESPACE}: {error}")
            return dict.fromkeys((CERTIFICATES_VALID, CREDENTIALS_ROTATED), unable)
        found: dict[str, Verdict] = {}
        if lifetimes := lifetimes_of(own, provided):
            found[CERTIFICATES_VALID] = check_certificates(lifetimes, now)
        if credentials := ages([labels_of(secret) for secret in own], now):
            found[CREDENTIALS_ROTATED] = check_credentials(credentials, now)
        return found

    async def _resources(
        self,
        condition: str,
        reason: str,
        kinds: Sequence[GroupVersionKind],
        namespace: str | None = None,
    ) -> dict[str, Verdict]:
        """Return the verdict about extension resources, if the garden has any."""
        try:
            lists = [await self._of_garden(gvk, namespace) for gvk in kinds]
        except KubeError as error:
            return {condition: Unable(f"failed listing {kinds[0].kind}s: {error}")}
        objects = list(chain.from_iterable(lists))
        return {condition: check_extension_resources(objects, reason)} if objects else {}

    async def _of_garden(self, gvk: GroupVersionKind, namespace: str | None) -> list[JsonObject]:
        try:
            objects = await self._client.list(gvk, namespace)
        except UnknownKind:
            return []
        return [obj for obj in objects if map_at(obj, "spec").get("class") == "garden"]


class Lifetime(NamedTuple):
    """The lifetime of a credential.

    Attributes:
        is_own: Whether the operator renews it.
        issued: When it was issued; None if unknown.
        renewal: When the operator renews it; None if its owner does.
        name: The name of the credential, which its Secrets share; empty if a user provides it.
    """

    key: Key
    issued: datetime | None
    until: datetime
    is_own: bool
    renewal: datetime | None = None
    name: str = ""

    def is_late(self, now: datetime) -> bool:
        """Return whether it should have been renewed already; renewal is due much earlier."""
        if self.issued is None:
            return now > self.until - _LATE
        return now > self.until - min(_LATE, (self.until - self.issued) / _SHARE)


async def read_credentials(client: Client) -> tuple[list[JsonObject], list[JsonObject]]:
    """Read the Secrets with the credentials of a Garden in the runtime cluster.

    Returns:
        The metadata of those that the operator generates, and the wildcard certificates that users
        provide.

    Raises:
        KubeError: The cluster refused, or did not answer.
    """
    return (
        await client.list(SECRET, NAMESPACE, labels=MANAGED, metadata_only=True),
        await client.list(SECRET, NAMESPACE, labels=WILDCARD),
    )


def lifetimes_of(own: Iterable[JsonObject], provided: Iterable[JsonObject]) -> list[Lifetime]:
    """Return all lifetimes, without those of replaced Secrets and unreadable certificates.

    Args:
        own: The Secrets of the secrets manager; their metadata is enough.
        provided: The Secrets that users provide.
    """
    return [*_own_lifetimes(own), *provided_lifetimes(provided)]


def _own_lifetimes(secrets: Iterable[JsonObject]) -> Iterator[Lifetime]:
    newest: dict[str, ManagedSecret] = {}
    for secret in (ManagedSecret(obj, {}) for obj in secrets):
        known = newest.get(secret.name)
        if known is None or known.age_rank < secret.age_rank:
            newest[secret.name] = secret
    for secret in newest.values():
        if secret.issued_at is not None and secret.valid_until is not None:
            yield Lifetime(
                Key.of(secret.obj),
                secret.issued_at,
                secret.valid_until,
                is_own=True,
                renewal=renewal_time(secret),
                name=secret.name,
            )


def provided_lifetimes(secrets: Iterable[JsonObject]) -> Iterator[Lifetime]:
    """Yield the lifetimes of the certificates in TLS Secrets, without those that are unreadable."""
    for secret in secrets:
        try:
            found = read_certificate(content(secret).get("tls.crt", b""))
        except (BundleError, CertificateError):
            continue  # the reconciliation reports it
        issued, until = found.not_valid_before_utc, found.not_valid_after_utc
        yield Lifetime(Key.of(secret), issued, until, is_own=False)


def check_certificates(lifetimes: Iterable[Lifetime], now: datetime) -> CareFailure | None:
    """Return which credentials should have been renewed already, or None."""
    late = [
        f"Secret {each.key} expires at {timestamp(each.until)}: "
        f"{'the operator should have renewed it' if each.is_own else 'replace it'}"
        for each in sorted(lifetimes)
        if each.is_late(now)
    ]
    return CareFailure("CertificatesExpiring", bounded(late)) if late else None


def check_credentials(credentials: Iterable[Age], now: datetime) -> CareFailure | None:
    """Return which credentials should be rotated, or None.

    Only a user or a schedule renews them. The message contains dates rather than ages, so that it
    stays the same from run to run.
    """
    old = sorted(
        f"credential {name} has not been rotated since {(now - age).date().isoformat()}: rotate it"
        for name, age in credentials
        if age > OLDEST
    )
    return CareFailure("CredentialsOld", bounded(old)) if old else None


def check_extension_resources(objects: Iterable[JsonObject], reason: str) -> CareFailure | None:
    """Return which objects are not ready, or None."""
    problems = sorted(
        f"{obj.get('kind')} {Key.of(obj)}: {failure.text}"
        for obj in objects
        if (failure := check_extension(obj)) is not None
    )
    return CareFailure(reason, bounded(problems)) if problems else None
