"""A resource manager whose token for the Shoot ends every twelve hours (spec 11 §1).

The token requestor and the resource manager run against real API servers; the time of the Shoot's
tokens passes on the clock of the test.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from pergola.api import marks
from pergola.api.kinds import CLUSTER_ROLE_BINDING, CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.credentials import TokenFile
from pergola.resource_manager.controllers.token_requestor.observe import token_of
from pergola.testing.waiting import until
from pergola.testing.world import World, config_map, has, is_applied, message
from tests.support.service_accounts import cluster_admin, until_allowed
from tests.support.simulated_time import SimulatedTime
from tests.support.token_clusters import Clusters, Recording

_STEP: Final = timedelta(minutes=30)
_STEPS: Final = 26


@dataclass
class Shoot:
    """A Shoot with a resource manager, whose token is in a file.

    Attributes:
        time: of the Shoot's API server.
    """

    clusters: Clusters
    world: World
    time: SimulatedTime
    token_file: Path

    def greeting(self, step: int) -> JsonObject:
        """Return a ConfigMap that the resource manager keeps.

        There is one for each step, because one that is edited again and again is repaired ever more
        slowly.
        """
        return config_map(f"greeting-{step}", self.clusters.target_namespace, text="hello")

    async def write_token(self) -> None:
        """Write the file as kubelet would."""
        self.token_file.write_bytes(token_of(await self.clusters.secret()))

    async def pass_time(self) -> None:
        """Let half an hour pass; then the token requestor looks, and kubelet writes the file."""
        self.time.advance(_STEP)
        await self.clusters.reconcile()
        await self.write_token()

    async def edit(self, step: int) -> None:
        """Change an object that the resource manager keeps."""
        key = Key.of(self.greeting(step))
        await self.clusters.target.patch(CONFIG_MAP, key, {"data": {"text": "edited"}})

    async def repaired(self, step: int) -> None:
        """Wait until the resource manager has repaired it."""
        desired = self.greeting(step)
        await until(
            self.clusters.target,
            CONFIG_MAP,
            Key.of(desired),
            lambda found: bool(found["data"] == desired["data"]),
        )


@pytest.fixture
async def shoot(clusters: Clusters, world: World, tmp_path: Path) -> AsyncGenerator[Shoot]:
    """Yield a Shoot whose resource manager has applied objects with its first token."""
    time = SimulatedTime(clusters.target_config, clusters.clock)
    found = Shoot(clusters, world, time, tmp_path / "token")

    def seconds() -> float:
        return clusters.clock.now().timestamp()

    async with (
        time.serving() as config,
        _cluster_admin(clusters),
        Recording.connect(config) as clusters.target_recorder,
        clusters.start(audiences=(), minimum_interval=0.0),
    ):
        await clusters.put()
        await clusters.issued()
        await found.write_token()
        credentials = TokenFile(found.token_file, monotonic=seconds)
        async with Client.connect(replace(config, credentials=credentials)) as target:
            await until_allowed(target, CONFIG_MAP)
            await world.start(target=target)
            await world.create("demo", *map(found.greeting, range(_STEPS)))
            await world.applied("demo")
            yield found
            await world.stop()


@asynccontextmanager
async def _cluster_admin(clusters: Clusters) -> AsyncGenerator[None]:
    """Allow everything to the ServiceAccount of the tokens."""
    namespace = clusters.target_namespace
    await clusters.target.create(cluster_admin(namespace, Key(namespace, "robot")))
    yield
    await clusters.target.delete(CLUSTER_ROLE_BINDING, Key("", namespace))


async def test_thirteen_hours_pass_without_a_refused_request(shoot: Shoot) -> None:
    for step in range(_STEPS):
        await shoot.pass_time()
        await shoot.edit(step)
        await shoot.repaired(step)

    assert shoot.time.issued == 2
    assert shoot.time.ended > 0
    assert shoot.time.refused == 0
    assert is_applied(await shoot.world.resource("demo"))


async def test_after_an_outage_of_the_requestor_a_new_token_suffices(shoot: Shoot) -> None:
    """A Shoot that slept or was moved for a day has a token that ended."""
    shoot.time.advance(timedelta(hours=13))
    await shoot.edit(0)
    await shoot.world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    failed = await shoot.world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
    assert ": Unauthorized" in message(failed, "ResourcesApplied")

    await shoot.pass_time()
    await shoot.repaired(0)
    await shoot.world.until("demo", has("ResourcesApplied", "True", "ApplySucceeded"))
