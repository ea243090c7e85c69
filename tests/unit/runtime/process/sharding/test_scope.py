"""A shard works on its own objects, and on none before it knows the assignment."""

from typing import cast

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change, Subscriber
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.queue import Queue
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.options import ShardLease
from pergola.runtime.process.sharding.ring import Assignment
from pergola.runtime.process.sharding.scope import EVERYTHING, ShardScope
from pergola.runtime.process.sharding.shard import Shard

pytestmark = pytest.mark.looptime

KEY = Key("demo", "first")


class Objects:
    """The cache of a controller, which sees one object or none."""

    def __init__(self) -> None:
        self._sees = True
        self._subscribers: list[Subscriber[bool]] = []

    def get(self, _: Key) -> bool | None:
        return True if self._sees else None

    def subscribe(self, subscriber: Subscriber[bool]) -> None:
        self._subscribers.append(subscriber)

    def remove(self) -> None:
        self._sees = False
        for subscriber in self._subscribers:
            subscriber(Change(KEY, True, None))  # noqa: FBT003 - the kept value


class Site:
    """A scope, whose assignments come from the test, and the runs of a reconciler."""

    def __init__(self) -> None:
        client = cast("Client", None)  # nothing is sent
        shard = Shard(client, ShardLease(ring="widgets", namespace="garden"), name="shard-a")
        self.share = shard.share
        self.scope = ShardScope(client, CONFIG_MAP, shard, Metrics())
        self.assignments = cast("Cache[Assignment]", self.scope.unit.caches[0])
        self.queue: Queue[Key] = Queue()
        self.scope.repeat(self.queue)
        self.objects = Objects()
        self.reconcile = self.scope.tracked(self._run, cast("Cache[bool]", self.objects))
        self.runs = 0
        self._version = 0

    async def _run(self, _: Key) -> Outcome:
        self.runs += 1
        return DONE

    def assign(self, shard: str, **more: str) -> None:
        """Let the scope see the object with a new assignment."""
        self._version += 1
        metadata: JsonObject = {
            "namespace": KEY.namespace,
            "name": KEY.name,
            "resourceVersion": str(self._version),
            "labels": {self.share.shard_label: shard, **more},
        }
        self.assignments.observe({"metadata": metadata})


async def test_a_shard_reconciles_only_its_own_objects() -> None:
    site = Site()
    site.assign("shard-b")
    await site.reconcile(KEY)
    assert site.runs == 0

    site.assign("shard-a")
    await site.reconcile(KEY)
    assert site.runs == 1

    site.assign("shard-a", **{site.share.drain_label: ""})
    await site.reconcile(KEY)
    assert site.runs == 1


async def test_a_run_before_the_assignment_is_known_is_repeated_afterwards() -> None:
    site = Site()
    await site.reconcile(KEY)
    assert (site.runs, site.queue.is_idle) == (0, True)

    site.assign("shard-a")

    assert await site.queue.get() == KEY


async def test_an_object_that_the_controller_no_longer_sees_is_not_waited_for() -> None:
    site = Site()
    await site.reconcile(KEY)
    site.objects.remove()
    await site.reconcile(KEY)

    site.assign("shard-a")

    assert site.queue.is_idle


async def test_an_object_that_arrives_without_a_run_before_is_not_repeated() -> None:
    site = Site()
    site.assign("shard-a")
    assert site.queue.is_idle


def test_without_shards_all_objects_are_watched() -> None:
    assert EVERYTHING.labels is None
