"""Report success for monitoring and extension resources in place of their controllers.

A Prometheus or an Alertmanager gets no pods, and a DNSRecord no record: their status only pretends
so, like that of a pod that kwok simulates.
"""

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from pergola.api.marks import (
    OPERATION,
    OPERATION_MIGRATE,
    OPERATION_RESTORE,
    OPERATION_WAIT_FOR_STATE,
)
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    generation_of,
    map_at,
)
from pergola.health import check, progressing
from pergola.health.extensions import check_extension
from pergola.health.workloads import replicas
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.manifests import manifest
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.late_kinds import late_caches

Identity = tuple[GroupVersionKind, Key]

_SINCE: Final = "2000-01-01T00:00:00Z"
_MANAGER: Final = "pergola-sandbox"
_OS_CONFIG: Final = "OperatingSystemConfig"
_WORKER: Final = "Worker"
_SCRIPT: Final = b"#!/bin/true\n"
_MONITORING: Final = tuple(
    GroupVersionKind("monitoring.coreos.com", "v1", kind) for kind in ("Prometheus", "Alertmanager")
)
ReportedTypes = Mapping[str, frozenset[str] | None]
"""Types of extension resources by kind; None stands for all types."""

OF_A_GARDEN: Final[ReportedTypes] = dict.fromkeys(
    ("BackupBucket", "BackupEntry", "DNSRecord", "Extension")
)
_OPERATIONS: Final = {OPERATION_MIGRATE: "Migrate", OPERATION_RESTORE: "Restore"}


class Reporter:
    """A reconciler that writes the status of success to objects that do not have it."""

    def __init__(
        self,
        client: Client,
        caches: dict[GroupVersionKind, Cache[JsonObject]],
        types: ReportedTypes,
    ) -> None:
        self._client = client
        self._caches = caches
        self._types = types

    async def reconcile(self, identity: Identity) -> Outcome:
        """Report success for one object, unless its status says so or it is being deleted."""
        kind, key = identity
        obj = self._caches[kind].get(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return DONE
        with suppress(NotFound):
            if kind in _MONITORING:
                await self._report_monitoring(kind, key, obj)
            elif self._is_reported(kind, obj):
                await self._report_extension(kind, key, obj)
        return DONE

    def _is_reported(self, kind: GroupVersionKind, obj: JsonObject) -> bool:
        types = self._types[kind.kind]
        return types is None or map_at(obj, "spec").get("type") in types

    async def _report_monitoring(self, kind: GroupVersionKind, key: Key, obj: JsonObject) -> None:
        if check(obj) or progressing(obj):
            status = _monitoring(obj)
            await self._client.patch(kind, key, {"status": status}, subresource="status")

    async def _report_extension(self, kind: GroupVersionKind, key: Key, obj: JsonObject) -> None:
        if not _asks(obj):
            return
        # The cache may not have its last status yet, and would report a migration as a change.
        obj = await self._client.get(kind, key)
        operation = annotations_of(obj).get(OPERATION)
        if not _asks(obj):
            return
        if operation is not None:
            obj = await self._client.patch(
                kind, key, {"metadata": {"annotations": {OPERATION: None}}}
            )
        status = _extension(obj, _OPERATIONS.get(operation or "", "Reconcile"))
        if kind.kind == _OS_CONFIG:
            status |= await self._write_cloud_config(key)
        if kind.kind == _WORKER:
            updated = status["lastOperation"]["lastUpdateTime"]
            status |= {"machineDeployments": [], "machineDeploymentsLastUpdateTime": updated}
        await self._client.patch(kind, key, {"status": status}, subresource="status")

    async def _write_cloud_config(self, key: Key) -> JsonObject:
        """Write the script that a machine would run first; return the status that names it."""
        name = f"osc-result-{key.name}"
        content = {"cloud_config": base64.b64encode(_SCRIPT).decode()}
        secret = manifest("v1", "Secret", name, namespace=key.namespace, data=content)
        await self._client.apply(secret, manager=_MANAGER, force=True)
        return {"cloudConfig": {"secretRef": {"name": name, "namespace": key.namespace}}}


def _asks(obj: JsonObject) -> bool:
    """Return whether an extension resource needs a report; a restored one gets its state first."""
    operation = annotations_of(obj).get(OPERATION)
    if operation == OPERATION_WAIT_FOR_STATE:
        return False
    return operation is not None or bool(check_extension(obj))


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


def _extension(obj: JsonObject, operation: str) -> JsonObject:
    return {
        "observedGeneration": generation_of(obj),
        "lastError": None,
        "lastOperation": {
            "type": operation,
            "state": "Succeeded",
            "progress": 100,
            "description": "Simulated: nothing was made",
            "lastUpdateTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
    }


def reporter_unit(client: Client, types: ReportedTypes, *, monitoring: bool = True) -> Unit:
    """Return the unit that reports success for all of these kinds, which may be defined later.

    Args:
        monitoring: report it for Prometheus and Alertmanager, too.
    """
    extensions = (GroupVersionKind("extensions.gardener.cloud", "v1alpha1", kind) for kind in types)
    kinds = (*(_MONITORING if monitoring else ()), *extensions)
    definitions, caches = late_caches(client, kinds)
    return Controller(
        "reporter",
        Reporter(client, caches, types).reconcile,
        watches=[Watch(cache, to=_of(kind)) for kind, cache in caches.items()],
        metrics=Metrics(),
        caches=[definitions, *caches.values()],
    )


def _of(kind: GroupVersionKind) -> Callable[[Change[JsonObject]], list[Identity]]:
    return lambda change: [(kind, change.key)]
