"""Resource managers that share ManagedResources, assigned by the real sharder."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
import pytest

from pergola.api.objects import JsonObject, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.pki.kubeconfigs import kubeconfig
from pergola.runtime.process.sharding.ring import Share
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_crds
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import RecordingClient, World
from tests.support.instances import Instance, Instances
from tests.support.recording_proxy import RecordingProxy
from tests.support.shard_history import History
from tests.support.sharder import ring, sharder

pytestmark = pytest.mark.soak("originals")

COUNT = 30
"""Enough ManagedResources that each of three shards gets one, except in one of 10^5 runs."""
RESOURCES = {"group": MANAGED_RESOURCE.group, "resource": "managedresources"}
STEADY = {"leaseDuration": "60s", "renewDeadline": "50s", "retryPeriod": "1s"}
"""Timing of a Lease that even a slow machine does not lose."""
SHORT = {"leaseDuration": "6s", "renewDeadline": "4s", "retryPeriod": "500ms"}
"""Timing of a Lease that expires soon; a slow machine may lose it without a defect."""


class Shards:
    """Replicas in a ring in the test's namespace, each behind a proxy that records its writes."""

    def __init__(self, world: World, proxy: RecordingProxy, folder: Path) -> None:
        self.world = world
        self.share = Share(f"ring-of-{world.namespace}", "")
        self.history = History(self.share)
        self.proxy = proxy
        self._folder = folder
        self._stack = AsyncExitStack()
        self._instances = Instances(folder / "unused", folder)

    async def start(self, name: str, times: JsonObject) -> Instance:
        """Start another replica."""
        url = await self._stack.enter_async_context(self.proxy.connection(name))
        path = self._folder / f"{name}.kubeconfig"
        path.write_bytes(orjson.dumps(kubeconfig(name, url, b"", None)))
        place = {"kubeconfig": str(path), "namespaces": [self.world.namespace]}
        config: JsonObject = {
            "sourceClientConnection": place,
            "targetClientConnection": place,
            "sharding": {"controllerRing": self.share.ring},
            "leaderElection": {"resourceNamespace": self.world.namespace, **times},
        }
        return await self._instances.start(name=name, config=config)

    async def join(self, name: str) -> Instance:
        """Start a replica with a short Lease, and return it once it has ManagedResources."""
        for attempt in itertools.count():
            holder = f"{name}-{attempt}"
            instance = await self.start(holder, SHORT)
            ended = asyncio.ensure_future(instance.process.wait())
            assigned = asyncio.ensure_future(self.until_any_assigned(holder))
            await asyncio.wait({ended, assigned}, return_when=asyncio.FIRST_COMPLETED)
            if assigned.done():
                ended.cancel()
                await assigned
                return instance
            assigned.cancel()
        raise AssertionError

    async def until_any_assigned(self, replica: str) -> None:
        """Wait until a replica has a ManagedResource."""

        def holds() -> bool:
            name = self.history.names(self.proxy.writes).get(replica)
            return name in self.history.current()

        await self.history.until(holds)

    async def close(self) -> None:
        """Kill all replicas."""
        await self._instances.kill_all()
        await self._stack.aclose()

    async def until_assigned(self, *replicas: str) -> None:
        """Wait until exactly these replicas have ManagedResources."""

        def holds() -> bool:
            names = self.history.names(self.proxy.writes)
            return self.history.current() == {names.get(name) for name in replicas}

        await self.history.until(holds)

    async def put(self, revision: int) -> None:
        """Write a new revision of every Secret at once."""
        async with asyncio.TaskGroup() as group:
            for number in range(COUNT):
                content = self.content(number, revision)
                group.create_task(self.world.put_secret(f"mr-{number}", *content))

    async def create(self) -> None:
        """Create the ManagedResources of all Secrets."""
        async with asyncio.TaskGroup() as group:
            for number in range(COUNT):
                group.create_task(self.world.create_resource(f"mr-{number}", [f"mr-{number}"]))

    def content(self, number: int, revision: int) -> list[JsonObject]:
        """Return the objects at a revision; one name changes with each revision."""
        return [
            self.world.config_map(f"mr-{number}.stays", revision=str(revision)),
            self.world.config_map(f"mr-{number}.moves-{revision}", revision=str(revision)),
        ]

    async def converged(self, revision: int) -> None:
        """Wait until the objects of a revision exist, and no others."""
        desired = {
            name_of(obj): obj["data"]
            for number in range(COUNT)
            for obj in self.content(number, revision)
        }
        await self.history.until(lambda: self.history.data == desired)

    async def violations(self) -> list[str]:
        """Return all writes of replicas to objects that were not assigned to them."""
        last = await self.world.edit("mr-0", {"metadata": {"labels": {"last": "yes"}}})
        await self.history.complete(last)
        return self.history.violations(self.proxy.writes)


@pytest.fixture
async def shards(
    lone_sandbox: Sandbox, lone_client: Client, fresh: str, tmp_path: Path
) -> AsyncIterator[Shards]:
    """Yield a ring without replicas, and the running sharder."""
    await install_crds(lone_client)
    config = load(lone_sandbox.kubeconfig)
    async with AsyncExitStack() as stack:
        recorder = await stack.enter_async_context(RecordingClient.connect(config))
        shards = Shards(World(lone_client, recorder, fresh), RecordingProxy(config), tmp_path)
        await stack.enter_async_context(sharder(lone_sandbox, lone_client, tmp_path))
        await stack.enter_async_context(shards.history.recorded(lone_client, fresh))
        stack.push_async_callback(shards.close)
        await lone_client.create(ring(shards.share.ring, fresh, RESOURCES))
        yield shards


async def test_replicas_share_and_hand_over_objects_and_never_write_to_the_same_one(
    shards: Shards,
) -> None:
    first, _ = await shards.start("a", STEADY), await shards.start("b", STEADY)
    await shards.put(0)
    await shards.create()
    await shards.until_assigned("a", "b")
    await shards.converged(0)

    await shards.start("c", STEADY)
    await shards.put(1)
    await shards.until_assigned("a", "b", "c")
    await shards.converged(1)

    await shards.put(2)
    assert await first.end() == 0
    await shards.until_assigned("b", "c")
    await shards.converged(2)

    assert await shards.violations() == []


async def test_killed_and_paused_replicas_never_write_to_objects_of_others(
    shards: Shards,
) -> None:
    await shards.put(0)
    await shards.create()
    await shards.start("steady", STEADY)
    killed, paused = await shards.join("killed"), await shards.join("paused")

    await shards.put(1)
    paused.pause()
    await killed.kill()
    await shards.until_assigned("steady")
    await shards.converged(1)
    await shards.put(2)
    await shards.start("added", STEADY)
    await shards.until_assigned("steady", "added")
    paused.resume()

    async with asyncio.timeout(PATIENCE):
        assert await paused.process.wait() != 0
    await shards.converged(2)
    assert await shards.violations() == []
