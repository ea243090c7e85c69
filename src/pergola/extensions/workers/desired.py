"""The machines that a Worker asks for, as objects of machine-controller-manager (spec 31 §4)."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from pergola.api.durations import DurationError, format_duration, parse_duration
from pergola.api.kinds import MACHINE_CLASS
from pergola.api.objects import JsonObject, JsonValue, map_at
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.workers.distribution import share, share_of_either
from pergola.extensions.workers.plan import Machines, PoolMachines, WorkerPlan, ZoneMachines
from pergola.extensions.workers.pool import C, Pool
from pergola.extensions.workers.pool_hash import pool_hash

PURPOSE: Final[Mapping[str, str]] = {"gardener.cloud/purpose": "machineclass"}
"""The label of Secrets that belong to MachineClasses."""
NODE_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_USER_DATA: Final = "userData"
_SETTINGS: Final = {
    "machineDrainTimeout": "drainTimeout",
    "machineHealthTimeout": "healthTimeout",
    "machineCreationTimeout": "creationTimeout",
    "inPlaceUpdateTimeout": "inPlaceUpdateTimeout",
    "machinePreserveTimeout": "machinePreserveTimeout",
    "disableHealthTimeout": "disableHealthTimeout",
    "maxEvictRetries": "maxEvictRetries",
}
"""Settings of a pool, and their names in a machine."""
_AUTOSCALER: Final = {
    "scaleDownUtilizationThreshold": "scale-down-utilization-threshold",
    "scaleDownGpuUtilizationThreshold": "scale-down-gpu-utilization-threshold",
    "scaleDownUnneededTime": "scale-down-unneeded-time",
    "scaleDownUnreadyTime": "scale-down-unready-time",
    "maxNodeProvisionTime": "max-node-provision-time",
}
"""Options of a pool, and the annotations from which the cluster autoscaler reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredMachines:
    """The machines of a pool in one zone.

    Attributes:
        name: of the MachineDeployment.
        class_name: of the MachineClass and its Secret.
        pool: the name of the pool.
        minimum: the least number of machines.
        maximum: the greatest number of machines.
        priority: of the pool, for the cluster autoscaler; None if unset.
        preserved: how many failed machines are kept for inspection; None if unset.
        is_manual: whether users choose when a machine is updated in place.
        machine_class: the MachineClass.
        secret: the Secret with what a machine runs at its start.
        options: the annotations for the cluster autoscaler; None removes one.
        template: the `spec.template.spec` of the MachineDeployment.
        strategy: the `spec.strategy` of the MachineDeployment.
    """

    name: str
    class_name: str
    pool: str
    minimum: int
    maximum: int
    priority: int | None
    preserved: int | None
    is_manual: bool
    machine_class: JsonObject
    secret: JsonObject
    options: Mapping[str, str | None]
    template: JsonObject
    strategy: JsonObject

    @property
    def status(self) -> JsonObject:
        """The entry of `status.machineDeployments`, which the cluster autoscaler needs."""
        entry: JsonObject = {"name": self.name, "minimum": self.minimum, "maximum": self.maximum}
        if self.priority is not None:
            entry["priority"] = self.priority
        if self.preserved is not None:
            entry["autoPreserveFailedMachineMax"] = self.preserved
        return entry


def desired_machines(
    plan: WorkerPlan[C], machines: Machines, provider: str, user_data: Mapping[str, bytes]
) -> list[DesiredMachines]:
    """Return the machines of all pools and zones, in order.

    Args:
        provider: the name of the cloud in MachineClasses.
        user_data: what machines run at their start, by pool.

    Raises:
        ExtensionError: a hash or the number of machines cannot be computed.
    """
    return [
        each
        for pool, rendered in zip(plan.pools, machines.pools, strict=True)
        for each in _of_pool(plan, pool, rendered, provider, user_data[pool.name])
    ]


def _of_pool(
    plan: WorkerPlan[C], pool: Pool[C], rendered: PoolMachines, provider: str, user_data: bytes
) -> Iterator[DesiredMachines]:
    digits = pool_hash(pool, plan.shoot.raw, rendered.hash_inputs)
    count = len(rendered.zones)
    settings = map_at(pool.raw, "machineControllerManager")
    preserved = settings.get("autoPreserveFailedMachineMax")
    for index, zone in enumerate(rendered.zones):
        name = f"{plan.technical_id}-{pool.name}-z{index + 1}"
        class_name = f"{name}-{digits}"
        meta: JsonObject = {"name": class_name, "namespace": plan.namespace}
        yield DesiredMachines(
            name=name,
            class_name=class_name,
            pool=pool.name,
            minimum=share(pool.minimum, index, count),
            maximum=share(pool.maximum, index, count),
            priority=pool.raw.get("priority"),
            preserved=None if preserved is None else share(int(preserved), index, count),
            is_manual=pool.is_manual,
            machine_class=_machine_class(plan, zone, provider, meta),
            secret={
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {**meta, "labels": dict(PURPOSE)},
                "type": "Opaque",
                "data": {_USER_DATA: base64.b64encode(user_data).decode()},
            },
            options=_autoscaler_options(pool),
            template=_machine_spec(pool, zone, class_name),
            strategy=_strategy(pool, index, count),
        )


def _machine_class(
    plan: WorkerPlan[C], zone: ZoneMachines, provider: str, meta: JsonObject
) -> JsonObject:
    return {
        "apiVersion": MACHINE_CLASS.api_version,
        "kind": MACHINE_CLASS.kind,
        "metadata": {**meta, "labels": {**zone.class_labels, NODE_ZONE: zone.zone}},
        "provider": provider,
        "providerSpec": zone.provider_spec,
        "nodeTemplate": zone.node_template,
        "credentialsSecretRef": plan.secret,
        "secretRef": meta,
    }


def _machine_spec(pool: Pool[C], zone: ZoneMachines, class_name: str) -> JsonObject:
    labels = {**pool.labels, **zone.node_labels}
    meta: JsonObject = {"labels": labels} if labels else {}
    if annotations := map_at(pool.raw, "annotations"):
        meta["annotations"] = annotations
    taints = pool.raw.get("taints")
    return {
        "class": {"kind": MACHINE_CLASS.kind, "name": class_name},
        "nodeTemplate": {
            **({"metadata": meta} if meta else {}),
            "spec": {"taints": taints} if taints else {},
        },
        **_settings(pool),
    }


def _settings(pool: Pool[C]) -> JsonObject:
    given = map_at(pool.raw, "machineControllerManager")
    settings: JsonObject = {
        field: _as_written(given[name])
        for name, field in _SETTINGS.items()
        if given.get(name) is not None
    }
    if conditions := given.get("nodeConditions"):
        settings["nodeConditions"] = ",".join(str(each) for each in conditions)
    return settings


def _strategy(pool: Pool[C], zone: int, zones: int) -> JsonObject:
    update: JsonObject = {
        "maxUnavailable": _limit(pool, "maxUnavailable", zone, zones, pool.minimum),
        "maxSurge": _limit(pool, "maxSurge", zone, zones, pool.maximum),
    }
    if not pool.is_in_place:
        return {"type": "RollingUpdate", "rollingUpdate": update}
    update["orchestrationType"] = "Manual" if pool.is_manual else "Auto"
    return {"type": "InPlaceUpdate", "inPlaceUpdate": update}


def _limit(pool: Pool[C], field: str, zone: int, zones: int, total: int) -> int | str:
    value = pool.raw.get(field, 0)
    try:
        return share_of_either(value, zone, zones, total)
    except ValueError as error:
        raise configuration_problem(f'{field} of worker pool "{pool.name}": {error}') from error


def _autoscaler_options(pool: Pool[C]) -> dict[str, str | None]:
    given = map_at(pool.raw, "clusterAutoscaler")
    return {
        f"autoscaler.gardener.cloud/{annotation}": str(_as_written(given.get(option) or "")) or None
        for option, annotation in _AUTOSCALER.items()
    }


def _as_written(value: JsonValue) -> JsonValue:
    """Return a value as Gardener writes it: durations as `1h30m0s`."""
    if isinstance(value, str):
        with suppress(DurationError):
            return format_duration(parse_duration(value))
    return value


def class_names(machines: Sequence[DesiredMachines]) -> set[str]:
    """Return the names of the MachineClasses, which are also those of their Secrets."""
    return {each.class_name for each in machines}
