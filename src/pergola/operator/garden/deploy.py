"""Applying, awaiting and removing the objects of components: written once, for all of them.

Nothing is written that would change nothing, and every wait is a watch.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.bundle import (
    Bundle,
    Registry,
    apply,
    delete,
    for_seed,
    for_shoot,
    wait_deleted,
    wait_healthy,
    wait_not_progressing,
)
from pergola.health import check, progressing
from pergola.kube import states
from pergola.kube.applied import is_applied
from pergola.kube.client import Client
from pergola.operator.components.component import Identity, Managed, Removable, Rendered, Target
from pergola.operator.garden.errors import NotReady
from pergola.runtime.clock import Clock, SystemClock

MANAGER: Final = "gardener-operator"
"""The field manager of the objects that the operator applies itself."""

_ORIGIN: Final = "gardener"
_CONDITION: Final = "care.gardener.cloud/condition-type"
_POLL_SECONDS: Final = 2.0


Problem = Callable[[JsonObject | None], str | None]


class Deployer:
    """Writes the objects of components to the runtime cluster.

    Objects for the virtual cluster go there as well: its resource manager reads their
    ManagedResources in the runtime cluster.
    """

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()

    async def apply(self, rendered: Rendered) -> None:
        """Apply all objects, those of the operator itself first, in the order given.

        Raises:
            KubeError: The API server refused one, or did not answer.
        """
        for obj in rendered.direct:
            await self._apply(obj)
        for managed in rendered.managed:
            bundle = await asyncio.to_thread(bundle_of, managed)
            await apply(self._client, bundle, clock=self._clock)

    async def wait(self, rendered: Rendered, limit: float) -> None:
        """Wait until everything is healthy, and rolled out where that is known.

        Args:
            limit: In seconds, for each of the objects; they are awaited together.

        Raises:
            NotReady: With the object, and what is wrong with it.
            WaitTimeout: The same for a ManagedResource.
        """
        async with asyncio.TaskGroup() as group:
            for obj in rendered.direct:
                group.create_task(self._wait_healthy(obj, limit))
            for managed in rendered.managed:
                waiting = wait_not_progressing if managed.rolled_out else wait_healthy
                key = Key(managed.namespace, managed.name)
                group.create_task(waiting(self._client, key, limit))

    async def remove(self, removable: Removable) -> None:
        """Request the deletion of all objects that a component may have left.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        for key in removable.managed:
            await delete(self._client, key)
        for identity in removable.direct:
            await self._delete(identity)

    async def wait_removed(self, removable: Removable, limit: float) -> None:
        """Wait until they are gone.

        Raises:
            NotReady: With the object that is still there.
            WaitTimeout: The same for a ManagedResource.
        """
        async with asyncio.TaskGroup() as group:
            for key in removable.managed:
                group.create_task(wait_deleted(self._client, key, limit))
            for identity in removable.direct:
                group.create_task(self._wait_gone(identity, limit))

    async def _apply(self, obj: JsonObject) -> None:
        live = await self._client.find(GroupVersionKind.of(obj), Key.of(obj))
        if live is None or not is_applied(obj, live, MANAGER):
            await self._client.apply(obj, manager=MANAGER, force=True)

    async def _delete(self, identity: Identity) -> None:
        live = await self._client.find(identity.gvk, identity.key, metadata_only=True)
        if live is not None:
            uid = live["metadata"]["uid"]
            await self._client.delete(identity.gvk, identity.key, uid=uid)

    async def _wait_healthy(self, obj: JsonObject, limit: float) -> None:
        identity = Identity(GroupVersionKind.of(obj), Key.of(obj))
        await self._wait(identity, limit, _problem)

    async def _wait_gone(self, identity: Identity, limit: float) -> None:
        await self._wait(identity, limit, lambda obj: "it still exists" if obj else None)

    async def _wait(self, identity: Identity, limit: float, problem_of: Problem) -> None:
        problem: str | None = "it was not read yet"
        watched = states.watched(self._client, identity.gvk, identity.key, _POLL_SECONDS)
        try:
            async with asyncio.timeout(limit) as deadline, aclosing(watched) as seen:
                async for obj in seen:
                    problem = problem_of(obj)
                    if problem is None:
                        return
        except TimeoutError:
            if not deadline.expired():
                raise
        raise NotReady(identity.gvk.kind, identity.key, limit, problem or "")


def bundle_of(managed: Managed) -> Bundle:
    """Return the ManagedResource of these objects with its Secrets (spec 20 §13)."""
    labels = {_CONDITION: managed.condition} if managed.condition else {}
    labels |= managed.labels
    objects = Registry(*managed.objects)
    if managed.target is Target.RUNTIME:
        return for_seed(
            managed.namespace, managed.name, objects, keep_objects=managed.keep, labels=labels
        )
    return for_shoot(
        managed.namespace,
        managed.name,
        objects,
        origin=_ORIGIN,
        keep_objects=managed.keep,
        labels=labels,
    )


def _problem(obj: JsonObject | None) -> str | None:
    """Return why an object is not healthy or not rolled out; None if it is, or has no rule."""
    if obj is None:
        return "it does not exist"
    return check(obj) or progressing(obj)
