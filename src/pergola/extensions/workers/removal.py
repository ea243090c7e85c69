"""Removal of all machines of a Shoot (spec 31 §5)."""

from typing import Final

from pergola.api.kinds import MACHINE_CLASS, MACHINE_DEPLOYMENT, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, finalizers_of, map_at
from pergola.api.texts import abridged
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.actuator import Context
from pergola.extensions.workers import writes
from pergola.extensions.workers.contract import WorkerContract
from pergola.extensions.workers.inputs import plan_of
from pergola.extensions.workers.live import (
    WAIT_SECONDS,
    Live,
    Verdict,
    awaited,
    until,
    whole_cache,
)
from pergola.extensions.workers.pool import C
from pergola.extensions.workers.reconcile import failure_of, rendered
from pergola.extensions.workers.rollout import failed_machines
from pergola.kube.errors import KubeError
from pergola.kube.selectors import select_name
from pergola.runtime.logging import get_logger

log = get_logger("worker")

_FINALIZERS: Final = frozenset(
    ("machine.sapcloud.io/machine-controller", "machine.sapcloud.io/machine-controller-manager")
)
"""The finalizers with which machine-controller-manager keeps credentials that it needs."""


async def remove(provider: WorkerContract[C], context: Context, obj: JsonObject) -> None:
    """Delete all machines, and return when neither they nor anything about them is left.

    A MachineClass stays as long as there is any Machine, because machine-controller-manager needs
    it to delete one.

    Raises:
        ExtensionError: machines cannot be deleted, or something is left after five minutes.
        KubeError: the API server refused, or did not answer.
    """
    client, namespace = context.client, context.namespace
    await _refresh_classes(provider, context, obj)
    await writes.mark_for_force_deletion(client, namespace)
    deployments = await client.list(MACHINE_DEPLOYMENT, namespace, metadata_only=True)
    await writes.delete_all(client, MACHINE_DEPLOYMENT, deployments)
    verdict = await awaited(context, _judge)
    if not verdict.is_good:
        raise failure_of(provider, verdict)
    for kind, labels in ((MACHINE_CLASS, None), (SECRET, writes.CLASS_SECRETS)):
        await _delete_kind(context, kind, labels)
    await _wait_until_released(context, obj)


async def _delete_kind(context: Context, kind: GroupVersionKind, labels: str | None) -> None:
    client, namespace = context.client, context.namespace
    objects = await client.list(kind, namespace, labels=labels, metadata_only=True)
    if not objects:
        return
    await writes.delete_all(client, kind, objects)
    cache = whole_cache(client, kind, namespace, labels=labels)
    if not await until([cache], lambda: len(cache) == 0):
        names = abridged(sorted(key.name for key, _ in cache.items()))
        raise ExtensionError(
            f"{kind.kind} {names} still exists after {WAIT_SECONDS:g} s: "
            "machine-controller-manager has not released it"
        )


async def _refresh_classes(provider: WorkerContract[C], context: Context, obj: JsonObject) -> None:
    """Update existing MachineClasses, as far as possible: machines are deleted with them.

    A Worker whose configuration is wrong is deleted with the classes that it has, and all of them
    get its credentials.
    """
    client, namespace = context.client, context.namespace
    live = await writes.read_classes(client, namespace)
    if not live.classes:
        return
    await writes.renew_credentials(client, live, map_at(obj, "spec", "secretRef"))
    try:
        plan = await plan_of(provider, context, obj)
        _, desired = await rendered(provider, context, plan, obj)
        known = [each for each in desired if each.class_name in live.classes]
        await writes.write_classes(client, known, live)
    except (ExtensionError, KubeError) as error:
        log.warning("machine classes were left as they were", namespace=namespace, error=str(error))


def _judge(live: Live) -> Verdict:
    counts = {
        "machine(s)": len(live.machines),
        "machine set(s)": len(live.sets),
        "machine deployment(s)": len(live.deployments),
    }
    left = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    return Verdict(
        f"{left} still exist" if left else "",
        failed_machines(live, live.deployments, operation="Delete"),
    )


async def _wait_until_released(context: Context, obj: JsonObject) -> None:
    """Wait until machine-controller-manager no longer keeps the credentials of the cloud."""
    reference = map_at(obj, "spec", "secretRef")
    key = Key(str(reference.get("namespace") or ""), str(reference.get("name") or ""))
    if not key.name or not key.namespace:
        return
    secret = await context.client.find(SECRET, key)
    if secret is None or _FINALIZERS.isdisjoint(finalizers_of(secret)):
        return
    cache = whole_cache(context.client, SECRET, key.namespace, fields=select_name(key.name))

    def is_released() -> bool:
        found = cache.get(key)
        return found is None or _FINALIZERS.isdisjoint(finalizers_of(found))

    if not await until([cache], is_released):
        raise ExtensionError(
            f"Secret {key} still has a finalizer of machine-controller-manager after "
            f"{WAIT_SECONDS:g} s"
        )
