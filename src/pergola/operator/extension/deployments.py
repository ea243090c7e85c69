"""ManagedResources of Extensions: applied, awaited and deleted within the time of a run."""

import asyncio
from typing import Final

from pergola import bundle
from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import Bundle, Registry
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.extension.names import ORIGIN
from pergola.runtime.clock import Clock

WAIT_SECONDS: Final = 150.0
"""For one ManagedResource; a whole run has three minutes."""


class Deployments:
    """ManagedResources in the garden's namespace.

    Args:
        client: Of the runtime cluster.
        limit: Seconds to wait for each.
    """

    def __init__(self, client: Client, clock: Clock, limit: float = WAIT_SECONDS) -> None:
        self._client = client
        self._clock = clock
        self._limit = limit

    async def apply_for_runtime(
        self, key: Key, objects: list[JsonObject], *, has_origin: bool = True
    ) -> None:
        """Apply objects of the runtime cluster.

        Args:
            has_origin: Whether the ManagedResource is labelled with its creator.

        Raises:
            BundleError: Objects are not valid, or described twice.
            KubeError: The API server refused, or did not answer.
        """
        labels = {"origin": ORIGIN} if has_origin else None

        def build() -> Bundle:
            return bundle.for_seed(key.namespace, key.name, Registry(*objects), labels=labels)

        await self._apply(await asyncio.to_thread(build))

    async def apply_for_virtual(self, key: Key, objects: list[JsonObject]) -> None:
        """Apply objects of the virtual cluster; raises as `apply_for_runtime` does."""

        def build() -> Bundle:
            registry = Registry(*objects)
            return bundle.for_shoot(key.namespace, key.name, registry, origin=ORIGIN)

        await self._apply(await asyncio.to_thread(build))

    async def wait(self, key: Key) -> None:
        """Wait until objects are applied, healthy and rolled out.

        Raises:
            WaitTimeout: Something is still wrong; the text says what.
            KubeError: The ManagedResource cannot be read.
        """
        await bundle.wait_not_progressing(self._client, key, self._limit)

    async def delete(self, key: Key) -> bool:
        """Delete objects and wait until they are gone; return whether there were any.

        Raises:
            WaitTimeout: The deletion is blocked; the text says by what.
            KubeError: The API server refused, or did not answer.
        """
        try:
            if await self._client.find(MANAGED_RESOURCE, key) is None:
                return False
        except UnknownKind:  # the Garden and all its kinds were deleted
            return False
        await bundle.delete(self._client, key)
        await bundle.wait_deleted(self._client, key, self._limit)
        return True

    async def _apply(self, built: Bundle) -> None:
        await bundle.apply(self._client, built, clock=self._clock)
