"""Machines that come from another seed (spec 31 §5, restore).

Their Machines and MachineSets are created as they were, before machine-controller-manager starts;
otherwise it would create new machines in the cloud. Each Machine gets the MachineClass of its pool:
one that was updated in place, or is about to be replaced, names another class, which does not exist
on the new seed. Without a class, machine-controller-manager could not even delete it.
"""

import base64
import zlib
from collections.abc import Mapping
from typing import Any, Final

import orjson

from pergola.api.kinds import MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.actuator import Context, Status
from pergola.extensions.workers import writes
from pergola.extensions.workers.contract import WorkerContract
from pergola.extensions.workers.inputs import plan_of
from pergola.extensions.workers.pool import C
from pergola.extensions.workers.reconcile import (
    deploy,
    deploy_classes,
    reconcile,
    rendered,
    scale_controller,
)
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists

_LARGEST_STATE: Final = 256 * 1024 * 1024


async def restore(provider: WorkerContract[C], context: Context, obj: JsonObject) -> Status:
    """Give a Shoot on its new seed the machines that it has, then those of its Worker.

    Raises:
        ExtensionError: the state cannot be read; see also `reconcile`.
        KubeError: the API server refused, or did not answer.
    """
    client, namespace = context.client, context.namespace
    states = machine_states(obj)
    plan = await plan_of(provider, context, obj)
    _, desired = await rendered(provider, context, plan, obj)
    with_state = [each for each in desired if maps_at(states.get(each.name, {}), "machineSets")]
    await deploy_classes(context, desired, plan.secret)
    for machines in with_state:
        state = states[machines.name]
        for each in maps_at(state, "machines"):
            map_at(each, "spec", "class")["name"] = machines.class_name
        for kind, field in ((MACHINE_SET, "machineSets"), (MACHINE, "machines")):
            objects = [_typed(each, kind, namespace) for each in maps_at(state, field)]
            await writes.each_of(objects, lambda each: _create(client, each))
    await deploy(
        context,
        obj,
        with_state,
        await client.list(MACHINE_DEPLOYMENT, namespace),
        is_hibernated=plan.shoot.hibernation_enabled,
        autoscaled=True,
        restored={each.name: _replicas(states[each.name]) for each in with_state},
    )
    if not plan.shoot.is_hibernated:
        await scale_controller(client, namespace, 1)
    return await reconcile(provider, context, obj)


def machine_states(obj: JsonObject) -> dict[str, JsonObject]:
    """Return the state of each MachineDeployment in `status.state` of a Worker, by name.

    Raises:
        ExtensionError: it cannot be read.
    """
    packed = map_at(obj, "status", "state").get("state")
    if not packed:
        return {}
    try:
        compressed = base64.b64decode(str(packed), validate=True)
        decoder = zlib.decompressobj(zlib.MAX_WBITS | 16)
        content = decoder.decompress(compressed, _LARGEST_STATE)
        state: Any = orjson.loads(content)
    except (ValueError, zlib.error) as error:
        raise ExtensionError(
            f"status.state of Worker {Key.of(obj)} is not the state of machines: {error}"
        ) from error
    deployments = state.get("machineDeployments") if isinstance(state, dict) else None
    if not isinstance(deployments, Mapping):
        return {}
    return {name: each for name, each in deployments.items() if isinstance(each, dict)}


def _replicas(state: JsonObject) -> int:
    replicas = state.get("replicas")
    return replicas if isinstance(replicas, int) else 0


def _typed(obj: JsonObject, kind: GroupVersionKind, namespace: str) -> JsonObject:
    """Return an object of a list, which has no type, for this seed."""
    return {
        **obj,
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {**map_at(obj, "metadata"), "namespace": namespace},
    }


async def _create(client: Client, obj: JsonObject) -> None:
    try:
        await client.create(obj)
    except AlreadyExists:
        return
