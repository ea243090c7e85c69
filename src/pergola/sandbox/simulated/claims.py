"""Volumes for PersistentVolumeClaims, where no provisioner runs.

A volume is only a name: a process node keeps the data of its processes in a folder per claim.
"""

from typing import Final

from pergola.api.kinds import PVC
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.manifests import manifest
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics
from pergola.sandbox.late_kinds import whole

VOLUME: Final = GroupVersionKind("", "v1", "PersistentVolume")

_NOWHERE: Final = "/simulated"


def claims_unit(client: Client) -> Unit:
    """Return the unit that binds all claims of a cluster."""
    claims = Cache(client, PVC, whole)

    async def reconcile(key: Key) -> Outcome:
        claim = claims.get(key)
        if claim is not None and not map_at(claim, "spec").get("volumeName"):
            await _create_volume(client, claim)
        return DONE

    return Controller("claims", reconcile, watches=[Watch(claims)], metrics=Metrics())


async def _create_volume(client: Client, claim: JsonObject) -> None:
    key, spec = Key.of(claim), map_at(claim, "spec")
    name = f"pvc-{uid_of(claim)}"
    volume = manifest(
        "v1",
        "PersistentVolume",
        name,
        spec={
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "claimRef": {"namespace": key.namespace, "name": key.name, "uid": uid_of(claim)},
            "hostPath": {"path": f"{_NOWHERE}/{name}"},
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": spec.get("storageClassName", ""),
        },
    )
    try:
        await client.create(volume)
    except AlreadyExists:
        return  # bound in a moment
