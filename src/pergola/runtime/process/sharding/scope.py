"""The objects of one kind that a process works on: all of them, or those of a shard.

Controllers keep their own caches, which may be ahead of the assignments that this module watches. A
run that comes too early is repeated once the assignment arrives.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, TypeVar

from pergola.api.objects import GroupVersionKind, Key, labels_of
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.queue import Queue
from pergola.runtime.controlling.unit import Controller
from pergola.runtime.controlling.watches import Events, Watch
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.sharding.drain import WORKERS, drainer
from pergola.runtime.process.sharding.ring import Assignment
from pergola.runtime.process.sharding.shard import Shard

T = TypeVar("T")

Reconcile: TypeAlias = Callable[[Key], Awaitable[Outcome]]


class Scope:
    """All objects of a kind.

    Attributes:
        labels: the selector of watches; None for all objects.
    """

    labels: str | None = None

    def tracked(self, reconcile: Reconcile, objects: Cache[T]) -> Reconcile:
        """Return a reconciler that runs only for objects of the scope.

        Args:
            objects: the cache of its controller.
        """
        return reconcile

    def repeat(self, queue: Queue[Key]) -> None:
        """Add objects to the queue of a reconciler whose runs came before they had arrived."""


EVERYTHING: Final = Scope()


class ShardScope(Scope):
    """The objects of a kind that are assigned to a shard.

    Args:
        client: guarded by the Lease of the shard.

    Attributes:
        unit: watches the assignments, and gives up the objects that move.
    """

    def __init__(
        self, client: Client, gvk: GroupVersionKind, shard: Shard, metrics: Metrics
    ) -> None:
        share = shard.share
        self.labels = share.selector
        self._flights = shard.flights(self._is_here)
        self._early: list[set[Key]] = []
        self._arrivals: Events[Key] = Events()
        self._assignments = Cache(
            client,
            gvk,
            lambda obj: share.assignment(labels_of(obj)),
            labels=share.selector,
            metadata_only=True,
        )
        self._assignments.subscribe(self._on_change)
        self.unit = Controller(
            f"drain-{gvk.kind.lower()}",
            drainer(client, gvk, share, self._flights),
            watches=[Watch(self._assignments, when=_is_draining)],
            workers=WORKERS,
            metrics=metrics,
        )

    def tracked(self, reconcile: Reconcile, objects: Cache[T]) -> Reconcile:
        """Wrap a reconciler: run it only for objects of the shard, which tracks its runs.

        Args:
            objects: the cache of its controller.
        """
        run = self._flights.tracked(reconcile)
        early: set[Key] = set()  # a part of `objects`: the others run when they appear there
        self._early.append(early)

        def forget(change: Change[T]) -> None:
            if change.new is None:
                early.discard(change.key)

        async def run_here(key: Key) -> Outcome:
            if self._is_here(key):
                return await run(key)
            if objects.get(key) is not None:
                early.add(key)
            return DONE

        objects.subscribe(forget)
        return run_here

    def repeat(self, queue: Queue[Key]) -> None:
        """Add objects to the queue of a reconciler whose runs came before they had arrived."""
        self._arrivals.subscribe(queue.add)

    def _is_here(self, key: Key) -> bool:
        return self._assignments.get(key) is Assignment.HERE

    def _on_change(self, change: Change[Assignment]) -> None:
        if change.new is not Assignment.HERE:
            return
        waiting = [early for early in self._early if change.key in early]
        for early in waiting:
            early.discard(change.key)
        if waiting:
            self._arrivals.notify(change.key)


def _is_draining(change: Change[Assignment]) -> bool:
    return change.new is Assignment.DRAINING
