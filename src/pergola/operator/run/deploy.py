"""Applying, awaiting and removing the objects of components: implemented once, for all of them.

Writes that would change nothing are not sent, and every wait is a watch.
"""

import asyncio
from contextlib import suppress
from typing import Final

from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import Bundle, Registry, apply, delete, for_seed, for_shoot
from pergola.garden.components.component import Managed, Removable, Rendered, Target
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.run.direct import DirectObjects
from pergola.operator.run.readiness import awaited_deployment, managed_problem, still_managed
from pergola.operator.run.roll_out import wait_rolled_out
from pergola.operator.run.waiting import Note, Problem, unnoted, wait_until
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.task_group import TaskGroup

_ORIGIN: Final = "gardener"
_FOLLOWED_SECONDS: Final = 300.0
_CONDITION: Final = "care.gardener.cloud/condition-type"


class Deployer:
    """Writes the objects of components to the runtime cluster.

    Objects for the virtual cluster are also written there: its resource manager reads their
    ManagedResources in the runtime cluster.

    Args:
        note: Receives the objects that are awaited.

    Attributes:
        applied: The objects in the runtime cluster that it has applied.
    """

    def __init__(self, client: Client, clock: Clock | None = None, note: Note = unnoted) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._note = note
        self._direct = DirectObjects(client, self._clock, note)
        self.applied: set[Identity] = set()

    async def apply(self, rendered: Rendered) -> None:
        """Apply all objects in the given order, those of the operator itself first.

        Raises:
            NotReady: A ManagedResource that must precede another one is not ready.
            KubeError: The API server refused one, or did not answer.
        """
        await self._direct.apply(rendered.direct)
        self.applied.update(_identity(obj) for obj in rendered.direct)
        for index, managed in enumerate(rendered.managed):
            if managed.follows:
                before = rendered.managed[index - 1]
                await self.wait(Rendered(managed=(before,)), _FOLLOWED_SECONDS)
            bundle = await asyncio.to_thread(bundle_of, managed)
            await apply(self._client, bundle, clock=self._clock)
            self.applied.update(map(_identity, (bundle.managed_resource, *bundle.secrets)))

    async def wait(self, rendered: Rendered, limit: float) -> None:
        """Wait until everything is healthy and, if known, rolled out.

        Args:
            limit: In seconds, for each of the objects; they are awaited together.

        Raises:
            NotReady: An object is not ready; the text says why.
        """
        async with TaskGroup() as group:
            for obj in rendered.direct:
                group.create_task(self._direct.wait(obj, limit))
            for managed in rendered.managed:
                group.create_task(self._wait_ready(managed, limit))

    async def remove(self, removable: Removable) -> None:
        """Request the deletion of all objects that a component may have left behind.

        Kinds that the API server no longer serves have no objects.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        for key in removable.managed:
            with suppress(UnknownKind):
                await delete(self._client, key)
        for identity in removable.direct:
            await self._direct.delete(identity)

    async def wait_removed(self, removable: Removable, limit: float) -> None:
        """Wait until they are gone.

        Raises:
            NotReady: An object still exists.
        """
        async with TaskGroup() as group:
            for key in removable.managed:
                group.create_task(self._wait_gone(key, limit))
            for identity in removable.direct:
                group.create_task(self._direct.wait_gone(identity, limit))

    async def _wait_ready(self, managed: Managed, limit: float) -> None:
        key = Key(managed.namespace, managed.name)
        await self._wait_managed(key, managed_problem(managed), limit)
        if managed.deployment:
            key = awaited_deployment(managed).identity.key
            await wait_rolled_out(self._client, self._clock, key, limit, self._note)

    async def _wait_gone(self, key: Key, limit: float) -> None:
        with suppress(UnknownKind):
            await self._wait_managed(key, still_managed, limit)

    async def _wait_managed(self, key: Key, problem_of: Problem, limit: float) -> None:
        await wait_until(self._client, MANAGED_RESOURCE, key, problem_of, limit, self._note)


def _identity(obj: JsonObject) -> Identity:
    return Identity(GroupVersionKind.of(obj), Key.of(obj))


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
