"""Creation and change of the machines of a Shoot (spec 31 §5).

Everything is checked and computed before anything is written.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.kinds import (
    DEPLOYMENT,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    POD,
    SECRET,
)
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of, map_at, name_of
from pergola.api.texts import abridged
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.actuator import Context, Status
from pergola.extensions.workers import writes
from pergola.extensions.workers.contract import WorkerContract
from pergola.extensions.workers.deployments import (
    current_replicas,
    machine_deployment,
    replicas_of,
    scales,
    wakes_up,
)
from pergola.extensions.workers.desired import DesiredMachines, class_names, desired_machines
from pergola.extensions.workers.inputs import plan_of, user_data_of
from pergola.extensions.workers.live import (
    KINDS,
    WAIT_SECONDS,
    Live,
    Verdict,
    awaited,
    class_of,
    read_live,
)
from pergola.extensions.workers.plan import Machines, WorkerPlan
from pergola.extensions.workers.pool import C
from pergola.extensions.workers.pool_hash import in_place_hash
from pergola.extensions.workers.rollout import failed_machines, is_updated, missing, stuck
from pergola.health.times import read_time
from pergola.kube.client import Client
from pergola.runtime.logging import get_logger

log = get_logger("worker")

CONTROLLER: Final = "machine-controller-manager"
_RETRY_SECONDS: Final = 15.0
_CONTROLLER_PODS: Final = f"role={CONTROLLER}"


async def reconcile(provider: WorkerContract[C], context: Context, obj: JsonObject) -> Status:
    """Give a Shoot the machines of its Worker, and return once they run.

    Raises:
        ExtensionError: the Worker or the Shoot do not allow it, machines failed, or they do not run
            after five minutes.
        KubeError: the API server refused, or did not answer.
    """
    plan = await plan_of(provider, context, obj)
    machines, desired = await rendered(provider, context, plan, obj)
    client, namespace = context.client, context.namespace
    is_hibernated = plan.shoot.hibernation_enabled
    live = await client.list(MACHINE_DEPLOYMENT, namespace)
    old = await deploy_classes(context, desired, plan.secret)
    if machines.status is not None:
        await context.save({"providerStatus": machines.status})
    if is_hibernated and await writes.mark_for_force_deletion(client, namespace):
        await scale_controller(client, namespace, 1)
    pools = [pool.raw for pool in plan.pools]
    await deploy(context, obj, desired, live, is_hibernated=is_hibernated, autoscaled=scales(pools))
    if is_hibernated:  # also those that were created meanwhile
        await writes.mark_for_force_deletion(client, namespace)
    await _save_deployments(context, obj, desired)
    await _wait_until_running(provider, context, obj, desired, is_hibernated=is_hibernated)
    status = await _in_place_status(context, obj, plan, desired)
    await _clean_up(provider, context, obj, desired, live, old)
    if is_hibernated:
        await _stop_controller(provider, context, obj)
    return status


async def rendered(
    provider: WorkerContract[C], context: Context, plan: WorkerPlan[C], obj: JsonObject
) -> tuple[Machines, list[DesiredMachines]]:
    """Return the machines of a plan.

    Raises:
        ExtensionError: the plan cannot be rendered, or user data is missing.
        KubeError: the API server refused, or did not answer.
    """
    user_data = await user_data_of(context, obj)
    # Hashing and encoding of many pools takes long.
    return await asyncio.to_thread(_render, provider, plan, user_data)


def _render(
    provider: WorkerContract[C], plan: WorkerPlan[C], user_data: Mapping[str, bytes]
) -> tuple[Machines, list[DesiredMachines]]:
    machines = provider.render(plan)
    return machines, desired_machines(plan, machines, provider.provider, user_data)


async def deploy_classes(
    context: Context, desired: Sequence[DesiredMachines], credentials: JsonObject
) -> writes.Classes:
    """Write MachineClasses and their Secrets, as far as they differ; return those before.

    Args:
        credentials: the reference to the credentials of the cloud, which all MachineClasses get.
    """
    old = await writes.read_classes(context.client, context.namespace)
    await writes.write_classes(context.client, desired, old)
    await writes.renew_credentials(context.client, old, credentials, class_names(desired))
    return old


async def deploy(
    context: Context,
    worker: JsonObject,
    desired: Sequence[DesiredMachines],
    live: Sequence[JsonObject],
    *,
    is_hibernated: bool,
    autoscaled: bool,
    restored: Mapping[str, int] | None = None,
) -> None:
    """Write MachineDeployments, as far as they differ.

    Args:
        live: the MachineDeployments as they are.
        autoscaled: whether the cluster autoscaler changes their numbers of machines.
        restored: the numbers of machines on the Shoot's last seed.

    Raises:
        RequeueAfter: one of them is still being deleted.
        KubeError: the API server refused, or did not answer.
    """
    by_name = {name_of(each): each for each in live}
    names = [each.name for each in desired]
    writes.wait_for_deletion(MACHINE_DEPLOYMENT, names, by_name)
    is_waking_up = not is_hibernated and wakes_up(live)

    async def one(machines: DesiredMachines) -> None:
        current = by_name.get(machines.name)
        replicas = replicas_of(
            machines,
            current,
            is_hibernated=is_hibernated,
            scales=autoscaled,
            wakes_up=is_waking_up,
            restored=(restored or {}).get(machines.name),
        )
        target = machine_deployment(machines, worker, current, replicas)
        await writes.write_deployment(context.client, target, current)

    await writes.each_of(desired, one)


async def scale_controller(client: Client, namespace: str, replicas: int) -> None:
    """Start or stop machine-controller-manager, if the Shoot has one."""
    key = Key(namespace, CONTROLLER)
    deployment = await client.find(DEPLOYMENT, key)
    if deployment is not None and current_replicas(deployment) != replicas:
        await client.patch(DEPLOYMENT, key, {"spec": {"replicas": replicas}})


async def _save_deployments(
    context: Context, obj: JsonObject, desired: Sequence[DesiredMachines]
) -> None:
    """Tell the caller which MachineDeployments there are, before they are complete.

    It starts the cluster autoscaler, and waits for a time later than the last one.
    """
    if not desired:
        return
    now = context.clock.now().replace(microsecond=0)
    last = read_time(map_at(obj, "status").get("machineDeploymentsLastUpdateTime"))
    if last is not None and now <= last:
        with suppress(OverflowError):  # at the end of the year 9999
            now = last + timedelta(seconds=1)
    await context.save(
        {
            "machineDeployments": [each.status for each in desired],
            "machineDeploymentsLastUpdateTime": timestamp(now),
        }
    )


async def _wait_until_running(
    provider: WorkerContract[C],
    context: Context,
    worker: JsonObject,
    desired: Sequence[DesiredMachines],
    *,
    is_hibernated: bool,
) -> None:
    """Wait until the desired machines run, or until none does if the Shoot is hibernated.

    Raises:
        ExtensionError: machines failed, the Worker was changed, or the time is over.
    """
    seen = Live({})
    names = [each.name for each in desired]

    def judge(live: Live) -> Verdict:
        nonlocal seen
        seen = live
        problem = missing(desired, live, is_hibernated=is_hibernated)
        return Verdict(problem, failed_machines(live, names))

    needs_machines = is_hibernated or any(each.is_manual for each in desired)
    kinds = KINDS if needs_machines else (MACHINE_DEPLOYMENT, MACHINE_SET)
    verdict = await awaited(context, judge, kinds, worker=worker)
    if verdict.is_good:
        return
    await _restart_if_stuck(context, seen)
    raise failure_of(provider, verdict)


def failure_of(provider: WorkerContract[C], verdict: Verdict) -> ExtensionError:
    """Return the error for a verdict that is not good, with the codes of the cloud.

    machine-controller-manager goes on trying to create a machine that failed.
    """
    if verdict.failure:
        error = ExtensionError(verdict.failure, *provider.codes_of(verdict.failure))
        return RequeueAfter(_RETRY_SECONDS, error)
    text = f"{verdict.missing} after {WAIT_SECONDS:g} s"
    return ExtensionError(text, *provider.codes_of(text))


async def _restart_if_stuck(context: Context, live: Live) -> None:
    """Restart machine-controller-manager if it does not serve a MachineDeployment."""
    name = stuck(live, context.clock.now())
    if not name:
        return
    client = context.client
    pods = await client.list(POD, context.namespace, labels=_CONTROLLER_PODS, metadata_only=True)
    await writes.delete_all(client, POD, pods)
    log.warning(
        "machine-controller-manager was stuck and is restarted",
        namespace=context.namespace,
        machine_deployment=name,
    )


async def _in_place_status(
    context: Context, obj: JsonObject, plan: WorkerPlan[C], desired: Sequence[DesiredMachines]
) -> Status:
    """Return the hashes of pools that have been updated in place, which the caller compares."""
    current = map_at(obj, "status", "inPlaceUpdates", "workerPoolToHashMap")
    pools = [pool for pool in plan.pools if pool.is_in_place]
    hashes = {pool.name: current[pool.name] for pool in pools if pool.name in current}
    live = None
    for pool in pools:
        if pool.is_manual:
            live = live or await read_live(context.client, context.namespace, KINDS)
            if not is_updated(pool.name, desired, live):
                continue
        hashes[pool.name] = in_place_hash(pool, plan.shoot.raw)
    if hashes == current:
        return {}
    return {"inPlaceUpdates": {"workerPoolToHashMap": hashes} if hashes else None}


async def _clean_up(
    provider: WorkerContract[C],
    context: Context,
    worker: JsonObject,
    desired: Sequence[DesiredMachines],
    deployments: Sequence[JsonObject],
    old: writes.Classes,
) -> None:
    """Delete the objects that no pool needs: a MachineClass only once no Machine names it.

    Args:
        deployments: the MachineDeployments before the run.
        old: the MachineClasses before the run.

    Raises:
        ExtensionError: machines of removed pools failed, or remain after five minutes, or the
            Worker was changed.
    """
    client, namespace = context.client, context.namespace
    names = {each.name for each in desired}
    unwanted = [each for each in deployments if name_of(each) not in names]
    await writes.delete_all(client, MACHINE_DEPLOYMENT, unwanted)
    if unwanted and await _is_running(client, namespace):
        await _wait_until_gone(provider, context, worker, {name_of(each) for each in unwanted})
    used = class_names(desired)
    if leftover := old.classes.keys() - used:
        used |= await _used_classes(context, worker, leftover)
        await writes.delete_all(client, MACHINE_CLASS, writes.unused(old.classes, used))
    await writes.delete_all(client, SECRET, writes.unused(old.secrets, used))


async def _used_classes(context: Context, worker: JsonObject, names: set[str]) -> set[str]:
    """Return the MachineClasses that remaining machines need; wait for machines that go."""
    used: set[str] = set()

    def judge(live: Live) -> Verdict:
        nonlocal used
        used = names & {*map(class_of, live.machines), *map(class_of, live.filled_sets())}
        going = {class_of(each) for each in live.machines if deletion_timestamp_of(each)}
        return Verdict(f"machines of {', '.join(sorted(used))} still exist" if used & going else "")

    await awaited(context, judge, (MACHINE_SET, MACHINE), worker=worker)
    return used


async def _is_running(client: Client, namespace: str) -> bool:
    deployment = await client.find(DEPLOYMENT, Key(namespace, CONTROLLER))
    return deployment is not None and current_replicas(deployment) > 0


async def _wait_until_gone(
    provider: WorkerContract[C], context: Context, worker: JsonObject, names: set[str]
) -> None:
    def judge(live: Live) -> Verdict:
        remaining = names & live.deployments.keys()
        text = ", ".join(sorted(remaining))
        return Verdict(
            f"machines of removed pools or zones still exist: {text}" if remaining else "",
            failed_machines(live, remaining, operation="Delete"),
        )

    verdict = await awaited(context, judge, (MACHINE_DEPLOYMENT,), worker=worker)
    if not verdict.is_good:
        raise failure_of(provider, verdict)


async def _stop_controller(
    provider: WorkerContract[C], context: Context, worker: JsonObject
) -> None:
    """Stop machine-controller-manager once it has no Machine left to delete.

    Raises:
        ExtensionError: Machines remain after five minutes, or the Worker was changed.
    """
    if not await _is_running(context.client, context.namespace):
        return

    def judge(live: Live) -> Verdict:
        names = abridged(sorted(map(name_of, live.machines)))
        return Verdict(f"machines still exist although the Shoot sleeps: {names}" if names else "")

    verdict = await awaited(context, judge, (MACHINE,), worker=worker)
    if not verdict.is_good:
        raise failure_of(provider, verdict)
    await scale_controller(context.client, context.namespace, 0)
