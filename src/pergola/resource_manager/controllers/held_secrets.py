"""The Secrets of a shard's ManagedResources, which only the leader of all shards writes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.resource_manager.source import Source, keep_resource
from pergola.runtime.controlling.controller import DependencyMissing


class HeldSecrets:
    """Waits until the leader has released the Secrets of a ManagedResource under deletion."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @asynccontextmanager
    async def leaving(self, resource: Key) -> AsyncGenerator[None]:
        """Check that only other ManagedResources still need the Secrets.

        Raises:
            DependencyMissing: the leader has not released one of them yet; its event triggers the
                next run.
            KubeError: the other ManagedResources cannot be read.
        """
        held = self._held(resource)
        if held:
            held -= await self._needed_by_others(resource)
        if held:
            first = Key(resource.namespace, min(held))
            raise DependencyMissing(f"the leader has not released Secret {first} yet")
        yield

    def _held(self, resource: Key) -> set[str]:
        seen = self._source.resource(resource)
        finalizer = self._source.responsibility.finalizer
        secrets = {
            name: self._source.secret(Key(resource.namespace, name))
            for name in (seen.secrets if seen else ())
        }
        return {
            name for name, secret in secrets.items() if secret and finalizer in secret.finalizers
        }

    async def _needed_by_others(self, resource: Key) -> set[str]:
        """Read which Secrets other ManagedResources need; those of other shards are not watched."""
        mine = self._source.responsibility
        needed: set[str] = set()
        for obj in await self._source.client.list(MANAGED_RESOURCE, resource.namespace):
            other = keep_resource(obj)
            if Key.of(obj) == resource or other.deleting:
                continue
            if mine.is_responsible(other.resource_class):
                needed |= other.secrets
        return needed
