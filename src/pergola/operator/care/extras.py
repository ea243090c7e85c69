"""Conditions that the original does not have: credentials, backups and DNS records.

Secrets are read from the operator's copies. The reconciliation of the Garden itself waits for the
other objects, so these are listed once an hour and after each operation instead of being watched.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, DNS_RECORD
from pergola.garden.landscape import NAMESPACE
from pergola.health import CareFailure, check_extension
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, UnknownKind
from pergola.operator.care.certificates import check_certificates, read_credentials
from pergola.operator.care.check import Unable, Verdict
from pergola.operator.care.components import bounded
from pergola.operator.care.credentials import check_credentials
from pergola.operator.rotation.ages import ages
from pergola.runtime.clock import Clock

CERTIFICATES_VALID: Final = "CertificatesValid"
BACKUPS_HEALTHY: Final = "BackupsHealthy"
DNS_RECORDS_HEALTHY: Final = "DNSRecordsHealthy"
CREDENTIALS_ROTATED: Final = "CredentialsRotated"
EXTRAS: Final = (CERTIFICATES_VALID, CREDENTIALS_ROTATED, BACKUPS_HEALTHY, DNS_RECORDS_HEALTHY)

_PERIOD: Final = timedelta(hours=1)


class Extras:
    """The verdicts about these conditions."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._listed: dict[str, tuple[bool, Verdict]] = {}
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
            self._listed = await self._list()
            self._listed_at, self._operation = now, operation
        found = {**await self._secrets(now), **self._listed}
        return {kind: verdict for kind, (exists, verdict) in found.items() if exists}

    async def _list(self) -> dict[str, tuple[bool, Verdict]]:
        backups = (BACKUP_BUCKET.gvk, BACKUP_ENTRY.gvk)
        return {
            BACKUPS_HEALTHY: await self._extension_resources("BackupsUnhealthy", *backups),
            DNS_RECORDS_HEALTHY: await self._extension_resources(
                "DNSRecordsUnhealthy", DNS_RECORD.gvk, namespace=NAMESPACE
            ),
        }

    async def _secrets(self, now: datetime) -> dict[str, tuple[bool, Verdict]]:
        """Return, for certificates and credentials, whether there are any, and the verdict."""
        try:
            found = await read_credentials(self._client)
        except KubeError as error:
            unable = Unable(f"failed listing Secrets in namespace {NAMESPACE}: {error}")
            return dict.fromkeys((CERTIFICATES_VALID, CREDENTIALS_ROTATED), (True, unable))
        lifetimes, labels = found.lifetimes, [labels_of(secret) for secret in found.own]
        return {
            CERTIFICATES_VALID: (bool(lifetimes), check_certificates(lifetimes, now)),
            CREDENTIALS_ROTATED: (bool(ages(labels, now)), check_credentials(labels, now)),
        }

    async def _extension_resources(
        self, reason: str, *kinds: GroupVersionKind, namespace: str | None = None
    ) -> tuple[bool, Verdict]:
        """Return whether the garden has any, and the verdict on them."""
        try:
            lists = [await self._of_garden(gvk, namespace) for gvk in kinds]
        except KubeError as error:
            return True, Unable(f"failed listing {kinds[0].kind}s: {error}")
        objects = list(chain.from_iterable(lists))
        return bool(objects), check_extension_resources(objects, reason)

    async def _of_garden(self, gvk: GroupVersionKind, namespace: str | None) -> list[JsonObject]:
        try:
            objects = await self._client.list(gvk, namespace)
        except UnknownKind:
            return []
        return [obj for obj in objects if map_at(obj, "spec").get("class") == "garden"]


def check_extension_resources(objects: Iterable[JsonObject], reason: str) -> CareFailure | None:
    """Return which objects are not ready, or None."""
    problems = sorted(
        f"{obj.get('kind')} {Key.of(obj)}: {failure.text}"
        for obj in objects
        if (failure := check_extension(obj)) is not None
    )
    return CareFailure(reason, bounded(problems)) if problems else None
