"""A stand-in for etcd-druid: it serves `Etcd` objects with real etcds, one member each.

It keeps the contract that others rely on: its finalizer, the Service for clients, the claim of the
data, the operation annotation and the status. A new etcd begins with its backup, if there is one.
"""

from contextlib import suppress
from typing import Final

from pergola.api.kinds import SERVICE, STATEFUL_SET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    generation_of,
    map_at,
    maps_at,
)
from pergola.kube.applied import is_applied
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.finalizers import add_finalizer, remove_finalizer
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.late_kinds import late_caches, whole
from pergola.sandbox.simulated.backups import Backups
from pergola.sandbox.simulated.etcd_manifests import objects

ETCD: Final = GroupVersionKind("druid.gardener.cloud", "v1alpha1", "Etcd")

_MANAGER: Final = "etcd-druid"
_FINALIZER: Final = "druid.gardener.cloud/etcd-druid"
_OPERATION: Final = "gardener.cloud/operation"
_SINCE: Final = "2000-01-01T00:00:00Z"
_CONDITIONS: Final = (
    "Ready",
    "AllMembersReady",
    "AllMembersUpdated",
    "BackupReady",
    "DataVolumesReady",
)


class Druid:
    """A reconciler of `Etcd` objects."""

    def __init__(
        self,
        client: Client,
        etcds: Cache[JsonObject],
        stateful_sets: Cache[JsonObject],
        backups: Backups | None,
    ) -> None:
        self._client = client
        self._backups = backups
        self._etcds = etcds
        self._stateful_sets = stateful_sets

    async def reconcile(self, key: Key) -> Outcome:
        """Apply the objects of an etcd, and report its state; remove them when it is deleted."""
        etcd = self._etcds.get(key)
        if etcd is None:
            return DONE
        if "deletionTimestamp" in etcd["metadata"]:
            with suppress(NotFound):  # it was deleted in between
                await self._delete(etcd)
            return DONE
        await add_finalizer(self._client, ETCD, etcd, _FINALIZER)
        await self._apply(etcd)
        if _OPERATION in annotations_of(etcd):
            await self._client.patch(ETCD, key, {"metadata": {"annotations": {_OPERATION: None}}})
        await self._report(key, etcd)
        return DONE

    async def _apply(self, etcd: JsonObject) -> None:
        snapshots = self._backups.of_etcd(etcd) if self._backups else None
        if self._backups and await self._client.find(STATEFUL_SET, Key.of(etcd)) is None:
            await self._backups.restore(self._client, etcd)
        for obj in objects(etcd, snapshots):
            live = await self._client.find(GroupVersionKind.of(obj), Key.of(obj))
            if live is None or not is_applied(obj, live, _MANAGER):
                await self._client.apply(obj, manager=_MANAGER, force=True)

    async def _delete(self, etcd: JsonObject) -> None:
        """Delete the objects; remove the finalizer once the etcd has stopped."""
        remaining = False
        for obj in objects(etcd):
            gvk = GroupVersionKind.of(obj)
            live = await self._client.find(gvk, Key.of(obj), metadata_only=True)
            if live is not None:
                uid = live["metadata"]["uid"]
                remaining |= not await self._client.delete(
                    gvk, Key.of(obj), uid=uid, propagation="Foreground"
                )
        if not remaining:
            await remove_finalizer(self._client, ETCD, etcd, _FINALIZER)

    async def _report(self, key: Key, etcd: JsonObject) -> None:
        own = (Key.of(obj) for obj in objects(etcd) if obj["kind"] == STATEFUL_SET.kind)
        status = _status(etcd, [self._stateful_sets.get(each) for each in own])
        if any(map_at(etcd, "status").get(name) != value for name, value in status.items()):
            await self._client.patch(ETCD, key, {"status": status}, subresource="status")


def _status(etcd: JsonObject, stateful_sets: list[JsonObject | None]) -> JsonObject:
    replicas = map_at(etcd, "spec")["replicas"]
    ready = all(each is not None and _is_rolled_out(each) for each in stateful_sets)
    return {
        "observedGeneration": generation_of(etcd),
        "ready": ready,
        "replicas": replicas,
        "currentReplicas": replicas,
        "readyReplicas": replicas if ready else 0,
        "conditions": [
            {
                "type": kind,
                "status": "True" if ready else "False",
                "reason": "Running" if ready else "NotReady",
                "message": "The etcd answers" if ready else "The etcd does not answer yet",
                "lastTransitionTime": _SINCE,
                "lastUpdateTime": _SINCE,
            }
            for kind in _CONDITIONS
        ],
    }


def _is_rolled_out(stateful_set: JsonObject) -> bool:
    replicas = map_at(stateful_set, "spec")["replicas"]
    status = map_at(stateful_set, "status")
    return (
        status.get("observedGeneration") == generation_of(stateful_set)
        and status.get("updateRevision") == status.get("currentRevision")
        and status.get("readyReplicas", 0) == replicas
        and status.get("updatedReplicas", 0) == replicas
    )


def druid_unit(client: Client, namespace: str | None, backups: Backups | None = None) -> Unit:
    """Return the unit that serves the `Etcd` objects of a namespace, or of all.

    They may be defined later.

    Args:
        backups: where backups are; None to take none.
    """
    definitions, caches = late_caches(client, [ETCD], namespace)
    etcds = caches[ETCD]
    stateful_sets = Cache(client, STATEFUL_SET, whole, namespace=namespace)
    services = Cache(client, SERVICE, whole, namespace=namespace)
    return Controller(
        "etcd-druid",
        Druid(client, etcds, stateful_sets, backups).reconcile,
        # The Service may be the last of the objects that a deletion waits for.
        watches=[Watch(etcds), Watch(stateful_sets, to=_owner), Watch(services, to=_owner)],
        metrics=Metrics(),
        caches=[definitions, services, stateful_sets, etcds],
    )


def _owner(change: Change[JsonObject]) -> list[Key]:
    obj = change.new or change.old or {}
    owners = maps_at(obj, "metadata", "ownerReferences")
    return [
        Key(change.key.namespace, owner["name"]) for owner in owners if owner["kind"] == ETCD.kind
    ]
