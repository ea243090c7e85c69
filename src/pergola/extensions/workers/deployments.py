"""MachineDeployments: what they become, given what they are (spec 31 §4.3)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pergola.api.kinds import MACHINE_DEPLOYMENT
from pergola.api.objects import JsonObject, annotations_of, labels_of, map_at
from pergola.extensions.workers.desired import DesiredMachines

POOL_LABEL: Final = "worker.gardener.cloud/pool"
WORKER_LABEL: Final = "worker.gardener.cloud/name"
"""The label of machines that are updated in place; it leads from a Machine to its Worker."""
NAME_LABEL: Final = "name"
"""The label that a MachineDeployment, its MachineSets and its Machines share."""
_READY_SECONDS: Final = 500


def machine_deployment(
    machines: DesiredMachines, worker: JsonObject, live: JsonObject | None, replicas: int
) -> JsonObject:
    """Return a MachineDeployment; foreign labels and annotations of the live one stay.

    Args:
        worker: the Worker.
        live: the MachineDeployment as it is; None if there is none.
    """
    meta = map_at(worker, "metadata")
    labels = {NAME_LABEL: machines.name}
    template_labels = dict(labels)
    if "inPlaceUpdate" in machines.strategy:
        template_labels[WORKER_LABEL] = str(meta.get("name"))
    template_meta: JsonObject = {"labels": template_labels}
    old = live or {}
    if kept := map_at(old, "spec", "template", "metadata", "annotations"):
        template_meta["annotations"] = kept
    obj_meta: JsonObject = {
        "name": machines.name,
        "namespace": meta.get("namespace"),
        "labels": {**labels_of(old), POOL_LABEL: machines.pool},
    }
    if annotations := _annotations(old, machines.options):
        obj_meta["annotations"] = annotations
    spec: JsonObject = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": template_meta, "spec": machines.template},
        "strategy": machines.strategy,
        "minReadySeconds": _READY_SECONDS,
        "revisionHistoryLimit": 0,
    }
    # Like Gardener, leave out zeros.
    if replicas:
        spec["replicas"] = replicas
    if machines.preserved:
        spec["autoPreserveFailedMachineMax"] = machines.preserved
    return {
        "apiVersion": MACHINE_DEPLOYMENT.api_version,
        "kind": MACHINE_DEPLOYMENT.kind,
        "metadata": obj_meta,
        "spec": spec,
    }


def replicas_of(
    machines: DesiredMachines,
    live: JsonObject | None,
    *,
    is_hibernated: bool,
    scales: bool,
    wakes_up: bool,
    restored: int | None = None,
) -> int:
    """Return the number of machines that a MachineDeployment asks for.

    Args:
        live: the MachineDeployment as it is; None if there is none.
        scales: whether the cluster autoscaler changes numbers of machines, of any pool.
        wakes_up: whether no MachineDeployment asks for a machine, because the Shoot was hibernated.
        restored: the number on the Shoot's last seed; None if it did not move.
    """
    if is_hibernated:
        return 0
    if not scales:
        return machines.minimum
    if live is None:
        return machines.minimum if restored is None else restored
    if wakes_up:
        return machines.minimum
    return min(max(current_replicas(live), machines.minimum), machines.maximum)


def current_replicas(deployment: JsonObject) -> int:
    """Return the number of machines that a live MachineDeployment asks for."""
    replicas = map_at(deployment, "spec").get("replicas")
    return replicas if isinstance(replicas, int) else 0


def wakes_up(live: Iterable[JsonObject]) -> bool:
    """Return whether no live MachineDeployment asks for a machine."""
    return not any(current_replicas(each) for each in live)


def scales(pools: Sequence[JsonObject]) -> bool:
    """Return whether the cluster autoscaler changes the number of machines of any pool."""
    return any(int(pool.get("maximum") or 0) > int(pool.get("minimum") or 0) for pool in pools)


def _annotations(live: JsonObject, options: Mapping[str, str | None]) -> dict[str, str]:
    kept = {name: text for name, text in annotations_of(live).items() if name not in options}
    return kept | {name: text for name, text in options.items() if text}
