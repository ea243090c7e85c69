"""Backups of etcds: copies of their data, in a folder of this machine.

A copy is consistent if nobody writes meanwhile. Gardener stops the API server before it asks for
the last snapshot of an etcd.
"""

import asyncio
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pergola.api.kinds import PVC
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    generation_of,
    map_at,
    maps_at,
    namespace_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.late_kinds import late_caches
from pergola.sandbox.simulated.etcd_pods import data_claim

COPY_TASK: Final = GroupVersionKind("druid.gardener.cloud", "v1alpha1", "EtcdCopyBackupsTask")

_SINCE: Final = "2000-01-01T00:00:00Z"
_INTERVAL: Final = 1.0
# etcd prepares the next file of its log under such a name.
_TEMPORARY: Final = shutil.ignore_patterns("*.tmp")


@dataclass(frozen=True)
class Backups:
    """The folders of backups and of volumes.

    Attributes:
        store: holds `<bucket>/<prefix>` for each etcd.
        volumes: holds `<namespace>/<claim>`.
    """

    store: Path
    volumes: Path

    def of_etcd(self, etcd: JsonObject) -> Path | None:
        """Return the folder of an etcd's backup, or None if it has none."""
        return self.of_store(map_at(etcd, "spec", "backup", "store"))

    def of_store(self, store: JsonObject) -> Path | None:
        """Return the folder of a store of druid's API, or None if the store is empty."""
        return self.store / store["container"] / store["prefix"] if store else None

    async def restore(self, client: Client, etcd: JsonObject) -> None:
        """Fill the volume of an etcd that does not run with its backup, if the volume is new."""
        source, claim = self.of_etcd(etcd), Key(namespace_of(etcd), data_claim(etcd))
        if source and await client.find(PVC, claim, metadata_only=True) is None:
            await asyncio.to_thread(replace, source, self.volumes / claim.namespace / claim.name)


def replace(source: Path, target: Path) -> None:
    """Replace a folder with a copy of another one, or remove it if there is no other one."""
    part = target.with_name(f".{target.name}")
    shutil.rmtree(part, ignore_errors=True)
    if source.is_dir():
        shutil.copytree(source, part, ignore=_TEMPORARY)
    shutil.rmtree(target, ignore_errors=True)
    if part.is_dir():
        part.rename(target)


def copy_task_unit(client: Client, backups: Backups) -> Unit:
    """Return the unit that copies backups from one bucket to another, and reports success."""
    definitions, caches = late_caches(client, [COPY_TASK])
    tasks = caches[COPY_TASK]

    async def reconcile(key: Key) -> Outcome:
        task = tasks.get(key)
        if task is None or maps_at(task, "status", "conditions"):
            return DONE
        source = backups.of_store(map_at(task, "spec", "sourceStore"))
        target = backups.of_store(map_at(task, "spec", "targetStore"))
        if source is None or target is None or not source.is_dir():
            return Again(_INTERVAL)  # the final snapshot is not there yet
        await asyncio.to_thread(replace, source, target)
        with suppress(NotFound):  # it was deleted in between
            await client.patch(COPY_TASK, key, {"status": _copied(task)}, subresource="status")
        return DONE

    return Controller(
        "etcd-copy-backups-task",
        reconcile,
        watches=[Watch(tasks)],
        metrics=Metrics(),
        caches=[definitions, tasks],
    )


def _copied(task: JsonObject) -> JsonObject:
    succeeded = {
        "type": "Succeeded",
        "status": "True",
        "reason": "Copied",
        "message": "The backup is copied",
        "lastTransitionTime": _SINCE,
        "lastUpdateTime": _SINCE,
    }
    return {"observedGeneration": generation_of(task), "conditions": [succeeded]}
