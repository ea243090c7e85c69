"""Conditions that the original does not have: certificates, backups and DNS records.

Certificates expire within months, and the reconciliation of the Garden itself awaits the others.
So the objects are listed once an hour and after each operation, instead of being watched.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, DNS_RECORD
from pergola.health import CareFailure, check_extension
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, UnknownKind
from pergola.kube.selectors import format_selector
from pergola.operator.care.certificates import (
    check_certificates,
    own_lifetimes,
    provided_lifetimes,
)
from pergola.operator.care.check import Unable, Verdict
from pergola.operator.care.components import bounded
from pergola.operator.garden.build import IDENTITY
from pergola.operator.garden.landscape import NAMESPACE
from pergola.runtime.clock import Clock

CERTIFICATES_VALID: Final = "CertificatesValid"
BACKUPS_HEALTHY: Final = "BackupsHealthy"
DNS_RECORDS_HEALTHY: Final = "DNSRecordsHealthy"
EXTRAS: Final = (CERTIFICATES_VALID, BACKUPS_HEALTHY, DNS_RECORDS_HEALTHY)

_PERIOD: Final = timedelta(hours=1)
_OWN: Final = format_selector(
    {"matchLabels": {"managed-by": "secrets-manager", "manager-identity": IDENTITY}}
)
_PROVIDED: Final = format_selector({"matchLabels": {"gardener.cloud/role": "garden-cert"}})


class Extras:
    """The verdicts about these conditions, as of the last time that the objects were listed."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._verdicts: dict[str, Verdict] = {}
        self._listed_at: datetime | None = None
        self._operation: object = None

    async def observe(self, garden: JsonObject) -> dict[str, Verdict]:
        """Return the verdicts; conditions that there is nothing to say about are left out."""
        now, operation = self._clock.now(), map_at(garden, "status", "lastOperation")
        is_due = self._listed_at is None or now - self._listed_at >= _PERIOD
        is_changed = operation != self._operation and operation.get("state") != "Processing"
        if is_due or is_changed:
            self._verdicts = await self._list(now)
            self._listed_at, self._operation = now, operation
        return self._verdicts

    async def _list(self, now: datetime) -> dict[str, Verdict]:
        backups = (BACKUP_BUCKET.gvk, BACKUP_ENTRY.gvk)
        found = {
            CERTIFICATES_VALID: await self._certificates(now),
            BACKUPS_HEALTHY: await self._extension_resources("BackupsUnhealthy", *backups),
            DNS_RECORDS_HEALTHY: await self._extension_resources(
                "DNSRecordsUnhealthy", DNS_RECORD.gvk, namespace=NAMESPACE
            ),
        }
        return {kind: verdict for kind, (exists, verdict) in found.items() if exists}

    async def _certificates(self, now: datetime) -> tuple[bool, Verdict]:
        """Return whether there are any, and the verdict about them."""
        try:
            own = await self._client.list(SECRET, NAMESPACE, labels=_OWN, metadata_only=True)
            provided = await self._client.list(SECRET, NAMESPACE, labels=_PROVIDED)
        except KubeError as error:
            return True, Unable(f"failed listing Secrets in namespace {NAMESPACE}: {error}")
        lifetimes = [*own_lifetimes(own), *provided_lifetimes(provided)]
        return bool(lifetimes), check_certificates(lifetimes, now)

    async def _extension_resources(
        self, reason: str, *kinds: GroupVersionKind, namespace: str | None = None
    ) -> tuple[bool, Verdict]:
        """Return whether there are any of the garden, and the verdict about them."""
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
