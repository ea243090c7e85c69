"""ManagedResources for the Shoot of an extension resource (spec 40 §3.3): thin over `bundle`."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Final

from pergola.api import marks
from pergola.api.managed_resource_status import (
    applied_problem,
    healthy_problem,
    progressing_problem,
)
from pergola.api.objects import JsonObject, Key
from pergola.bundle import (
    Bundle,
    Registry,
    Settings,
    apply,
    for_shoot,
    set_keep_objects,
    wait_until,
)
from pergola.bundle import delete as delete_bundle
from pergola.bundle import wait_deleted as wait_bundle_deleted
from pergola.bundle.waits import watched
from pergola.extensions.actuator import Context
from pergola.kube.client import Client

DELETION_SECONDS: Final = 120.0
_WAITING_PERCENT: Final = 60


async def create_for_shoot(
    context: Context,
    name: str,
    origin: str,
    objects: Iterable[JsonObject | None],
    *,
    keep_objects: bool = False,
    condition_type: str = "",
    labels: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> JsonObject:
    """Makes these the objects of a ManagedResource beside the extension resource.

    What is there already as it should be is not written again.

    Args:
        name: of the ManagedResource, such as `extension-networking-calico-config`.
        origin: the extension, such as `extension-networking-calico`.
        objects: for the Shoot; None stands for one that is not wanted here.
        keep_objects: whether they stay when the ManagedResource goes.
        condition_type: the condition of the Shoot that the health of these objects counts for,
            such as `SystemComponentsHealthy`; empty for the default.
        labels: further labels of the ManagedResource.
        settings: how the objects are managed, beside that.

    Returns:
        The ManagedResource as stored.

    Raises:
        BundleError: an object cannot be part of a ManagedResource.
        KubeError: the API server refused, or did not answer.
    """
    own = dict(labels or {})
    if condition_type:
        own[marks.CARE_CONDITION_TYPE] = condition_type

    def build() -> Bundle:
        return for_shoot(
            context.namespace,
            name,
            Registry(*objects),
            origin=origin,
            keep_objects=keep_objects,
            settings=settings or Settings(),
            labels=own,
        )

    # Compressing takes long where there is much of it.
    bundle = await asyncio.to_thread(build)
    return await apply(context.client, bundle, clock=context.clock)


async def set_keep(context: Context, name: str, *, keep: bool) -> None:
    """Decides whether the objects stay when the ManagedResource goes; nothing if it is gone."""
    await set_keep_objects(context.client, Key(context.namespace, name), keep)


async def delete(context: Context, name: str) -> None:
    """Asks for the deletion of a ManagedResource; nothing if it is gone."""
    await delete_bundle(context.client, Key(context.namespace, name))


async def wait_deleted(context: Context, name: str, seconds: float = DELETION_SECONDS) -> None:
    """Returns once a ManagedResource is gone, and with it its objects unless they are kept.

    Raises:
        WaitTimeout: it is still there, and why if that is known.
    """
    await wait_bundle_deleted(context.client, Key(context.namespace, name), seconds)


async def leave(context: Context, name: str, seconds: float = DELETION_SECONDS) -> None:
    """Removes a ManagedResource and keeps its objects: they move to another seed.

    Raises:
        WaitTimeout: it is still there.
    """
    await set_keep(context, name, keep=True)
    await delete(context, name)
    await wait_deleted(context, name, seconds)


async def wait_applied(
    context: Context, name: str, seconds: float, *, percent: int = _WAITING_PERCENT
) -> JsonObject:
    """Returns a ManagedResource once its objects are applied, healthy and rolled out.

    What it still waits for is told as progress.

    Args:
        percent: of the work that is done when the waiting begins.

    Raises:
        WaitTimeout: it did not get there; says why.
    """

    async def told(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
        async with aclosing(watched(client, key)) as states:
            async for resource in states:
                problem = _problem(resource)
                if problem is not None:
                    await context.progress(
                        percent, f"Waiting for ManagedResource {name}: {problem}"
                    )
                yield resource

    checks = (applied_problem, healthy_problem, progressing_problem)
    key = Key(context.namespace, name)
    return await wait_until(context.client, key, seconds, *checks, states=told)


def _problem(resource: JsonObject | None) -> str | None:
    if resource is None:
        return "it is not there"
    checks = (applied_problem, healthy_problem, progressing_problem)
    return next(filter(None, (check(resource) for check in checks)), None)
