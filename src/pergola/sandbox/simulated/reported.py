"""Report success for monitoring and extension resources in place of their controllers.

A Prometheus or an Alertmanager gets no pods, and a DNSRecord no record: their status only pretends
so, like that of a pod that kwok simulates.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from pergola.api.marks import OPERATION
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, generation_of
from pergola.health import check, progressing
from pergola.health.extensions import check_extension
from pergola.health.workloads import replicas
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.late_kinds import late_caches

Identity = tuple[GroupVersionKind, Key]

_SINCE: Final = "2000-01-01T00:00:00Z"
_MONITORING: Final = tuple(
    GroupVersionKind("monitoring.coreos.com", "v1", kind) for kind in ("Prometheus", "Alertmanager")
)
_EXTENSIONS: Final = tuple(
    GroupVersionKind("extensions.gardener.cloud", "v1alpha1", kind)
    for kind in ("BackupBucket", "BackupEntry", "DNSRecord", "Extension")
)


class Reporter:
    """A reconciler that writes the status of success to objects that do not have it."""

    def __init__(self, client: Client, caches: dict[GroupVersionKind, Cache[JsonObject]]) -> None:
        self._client = client
        self._caches = caches

    async def reconcile(self, identity: Identity) -> Outcome:
        """Report success for one object, unless its status says so or it is being deleted."""
        kind, key = identity
        obj = self._caches[kind].get(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return DONE
        with suppress(NotFound):
            if kind in _MONITORING:
                await self._report_monitoring(kind, key, obj)
            else:
                await self._report_extension(kind, key, obj)
        return DONE

    async def _report_monitoring(self, kind: GroupVersionKind, key: Key, obj: JsonObject) -> None:
        if check(obj) or progressing(obj):
            status = _monitoring(obj)
            await self._client.patch(kind, key, {"status": status}, subresource="status")

    async def _report_extension(self, kind: GroupVersionKind, key: Key, obj: JsonObject) -> None:
        if OPERATION in annotations_of(obj):
            obj = await self._client.patch(
                kind, key, {"metadata": {"annotations": {OPERATION: None}}}
            )
        if check_extension(obj):
            status = _extension(obj)
            await self._client.patch(kind, key, {"status": status}, subresource="status")


def _monitoring(obj: JsonObject) -> JsonObject:
    count = replicas(obj)
    return {
        "paused": False,
        "replicas": count,
        "updatedReplicas": count,
        "availableReplicas": count,
        "unavailableReplicas": 0,
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "observedGeneration": generation_of(obj),
                "lastTransitionTime": _SINCE,
            }
            for kind in ("Available", "Reconciled")
        ],
    }


def _extension(obj: JsonObject) -> JsonObject:
    return {
        "observedGeneration": generation_of(obj),
        "lastError": None,
        "lastOperation": {
            "type": "Reconcile",
            "state": "Succeeded",
            "progress": 100,
            "description": "Simulated: nothing was made",
            "lastUpdateTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
    }


def reporter_unit(client: Client) -> Unit:
    """Return the unit that reports success for all of these kinds, which may be defined later."""
    definitions, caches = late_caches(client, (*_MONITORING, *_EXTENSIONS))
    return Controller(
        "reporter",
        Reporter(client, caches).reconcile,
        watches=[Watch(cache, to=_of(kind)) for kind, cache in caches.items()],
        metrics=Metrics(),
        caches=[definitions, *caches.values()],
    )


def _of(kind: GroupVersionKind) -> Callable[[Change[JsonObject]], list[Identity]]:
    return lambda change: [(kind, change.key)]
