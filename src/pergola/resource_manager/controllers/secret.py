"""Protection of Secrets from deletion while ManagedResources need them (spec 11 §6).

A Secret named by a ManagedResource of this instance's class gets this instance's finalizer, and
loses it when no ManagedResource names it any longer. No Secret may stay undeletable after this
process is removed:

- The finalizer is added only for a ManagedResource that has our finalizer itself and is not being
  deleted, so that the ManagedResource cannot disappear without us.
- The ManagedResource controller removes it (`Secrets.leaving`) before its own finalizer.
"""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from pergola.api.kinds import SECRET
from pergola.api.objects import Key
from pergola.kube.errors import NotFound
from pergola.resource_manager.source import SeenResource, SeenSecret, Source
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit, Watching
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("secret")

SecretMode = Literal["Protect", "RemoveOnly"]
NAME: Final = "secret"
PROTECT: Final = "Protect"
_DEADLINE: Final = 180.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller."""

    workers: int = 5
    mode: SecretMode = PROTECT


class SecretRelease(Protocol):
    """The release of Secrets when a ManagedResource is deleted."""

    def leaving(self, resource: Key) -> AbstractAsyncContextManager[None]:
        """Remove the finalizer from the Secrets that only this ManagedResource needs.

        Raises:
            KubeError, ReconcileError: a Secret still has the finalizer; the ManagedResource must
                not go yet.
        """
        ...


def secret_unit(
    source: Source,
    secrets: "Secrets",
    settings: Settings,
    metrics: Metrics,
    *,
    caches: Iterable[Watching] = (),
) -> Unit:
    """Return the controller that protects Secrets while ManagedResources need them.

    Args:
        caches: the caches of the source, unless another unit runs them.
    """
    return Controller(
        NAME,
        secrets.reconcile,
        watches=[
            Watch(source.secrets, to=secrets.triggered_by_secret),
            Watch(source.resources, to=secrets.triggered_by_resource),
        ],
        caches=caches,
        workers=settings.workers,
        metrics=metrics,
        deadline=_DEADLINE,
    )


class Secrets:
    """The reconciler; it changes nothing in a Secret but this instance's own finalizer.

    Args:
        mode: `RemoveOnly` removes the finalizer everywhere, and never adds it.
        releases_early: whether a ManagedResource that is being deleted no longer needs its Secrets.
            Its shard waits for their release, because only the leader then writes Secrets.
    """

    def __init__(
        self, source: Source, mode: SecretMode = PROTECT, *, releases_early: bool = False
    ) -> None:
        self._source = source
        self._releases_early = releases_early
        self._protects = mode == PROTECT
        self._leaving: set[Key] = set()

    async def reconcile(self, key: Key) -> Outcome:
        """Add the finalizer to one Secret, or remove it, if necessary."""
        async with self._source.changing(key):
            seen = self._source.secret(key)
            if seen is not None and self._is_wrong(key, seen):
                await self._write(key, seen)
        return DONE

    @asynccontextmanager
    async def leaving(self, resource: Key) -> AsyncGenerator[None]:
        """Remove the finalizer from the Secrets of a ManagedResource that is released in the block.

        A Secret that another ManagedResource needs keeps it, unless that one is also being
        released.

        Raises:
            KubeError: a Secret still has the finalizer; the ManagedResource must remain for now.
        """
        seen = self._source.resource(resource)
        names = seen.secrets if seen is not None else frozenset()
        self._leaving.add(resource)
        try:
            for name in sorted(names):
                await self._release(Key(resource.namespace, name))
            yield
        finally:
            self._leaving.discard(resource)

    def triggered_by_secret(self, change: Change[SeenSecret]) -> Iterator[Key]:
        """Yield the Secret if its finalizers are wrong."""
        if change.new is not None and self._is_wrong(change.key, change.new):
            yield change.key

    def triggered_by_resource(self, change: Change[SeenResource]) -> Iterator[Key]:
        """Yield the Secrets with wrong finalizers that a ManagedResource names or named."""
        old = change.old.secrets if change.old is not None else frozenset()
        new = change.new.secrets if change.new is not None else frozenset()
        for name in old | new:
            key = Key(change.key.namespace, name)
            secret = self._source.secret(key)
            if secret is not None and self._is_wrong(key, secret):
                yield key

    # Deciding

    def _is_wrong(self, key: Key, secret: SeenSecret) -> bool:
        if self._source.responsibility.finalizer in secret.finalizers:
            return not (self._protects and self._is_needed(key))
        return self._protects and not secret.deleting and self._is_desired(key)

    def _is_needed(self, secret: Key) -> bool:
        """Return whether to keep an existing finalizer, even during a deletion by us."""
        finalizer = self._source.responsibility.finalizer
        return any(
            not reader.deleting or (finalizer in reader.finalizers and not self._releases_early)
            for reader in self._readers(secret)
        )

    def _is_desired(self, secret: Key) -> bool:
        """Return whether to add the finalizer: only if we must release the ManagedResource."""
        finalizer = self._source.responsibility.finalizer
        return any(
            not reader.deleting and finalizer in reader.finalizers
            for reader in self._readers(secret)
        )

    def _readers(self, secret: Key) -> Iterator[SeenResource]:
        for key in self._source.readers(secret):
            reader = self._source.resource(key)
            if reader is None or key in self._leaving:
                continue
            if self._source.responsibility.is_responsible(reader.resource_class):
                yield reader

    # Writing

    async def _release(self, key: Key) -> None:
        async with self._source.changing(key):
            seen = self._source.secret(key)
            if seen is None or self._source.responsibility.finalizer not in seen.finalizers:
                return
            if not self._is_needed(key):
                await self._write(key, seen)

    async def _write(self, key: Key, seen: SeenSecret) -> None:
        """Add or remove the finalizer, if the Secret is unchanged since it was read."""
        finalizer = self._source.responsibility.finalizer
        protected = finalizer in seen.finalizers
        left = [name for name in seen.finalizers if name != finalizer]
        metadata = {
            "resourceVersion": seen.resource_version,
            "finalizers": left if protected else [*left, finalizer],
        }
        with suppress(NotFound):
            written = await self._source.client.patch(SECRET, key, {"metadata": metadata})
            self._source.observe_secret(written, seen)
            log.debug("secret released" if protected else "secret protected", secret=str(key))
