"""A Shoot on AWS changes from the original's extension to Pergola's, kind by kind, and back.

The original is provider-aws v1.73.0 with its chart and its webhooks. The commands are those of
docs/how-to/migrate-extensions.md.
"""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from pergola.api.kinds import (
    DEPLOYMENT,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    NODE,
    SECRET,
    SHOOT,
)
from pergola.api.objects import JsonObject, Key, generation_of, name_of, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.yaml import dump
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import everything
from pergola.sandbox.landscape import in_aws
from pergola.sandbox.landscape.aws import REGION, account_in_aws
from pergola.sandbox.on_demand import PROVIDER_AWS
from tests.support.documented.guides import MIGRATION
from tests.support.documented.pages import blocks
from tests.support.documented.shell import Shell
from tests.support.landscape import SeedCluster, World, living_landscape
from tests.support.landscape_machines import (
    ZONES,
    ShootOnAws,
    create_shoot_with_machines,
    pool,
)

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(2400),
]

HEADINGS: Final = (
    "On AWS, take the kinds from the original first",
    "Take control planes over",
    "Take machines over",
    "Go back",
)
KEPT: Final = (
    *(MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE),
    *(MANAGED_RESOURCE, SECRET, DEPLOYMENT),
)
"""Kinds whose objects in the namespace of the control plane survive."""
BOOTSTRAP: Final = "shoot-access-gardener-resource-manager-bootstrap"
"""The Secret with which gardenlet starts a resource manager, and which it removes afterwards."""
NUMBERED: Final = ("kube-apiserver", "machine-controller-manager")
"""Deployments that stay as they are."""


class Handover:
    """A Shoot whose extension changes.

    Attributes:
        runtime, garden, seed: shells for the cluster of the Extensions, that of the Shoots, and
            that of the Seed.
        shoot: with two machines.
    """

    def __init__(
        self,
        aws: CorrectedAws,
        shoot: ShootOnAws,
        runtime: Shell,
        garden: Shell,
        seed: Shell,
    ) -> None:
        self.aws = aws
        self.shoot = shoot
        self.shells = {"runtime": runtime, "garden": garden, "seed": seed}

    async def follow(self, heading: str) -> list[str]:
        """Type the blocks below a heading; return what was written in AWS meanwhile."""
        self.aws.writes()
        for cluster, text in typed(heading):
            await self.shells[cluster].run(text)
        await self.shoot.landscape.performed(SHOOT, self.shoot.key)
        await self.shoot.until_nodes_run(2)
        return self.aws.writes()

    async def picture(self) -> dict[str, object]:
        """Return what must survive, by kind and name."""
        client, namespace = self.shoot.seed.site.client, await self.shoot.namespace()
        found: dict[str, object] = {**await everything(self.shoot.account)}
        for kind in KEPT:
            for obj in await client.list(kind, namespace, metadata_only=True):
                if name_of(obj).startswith(BOOTSTRAP):
                    continue
                found[f"{kind.kind} {name_of(obj)}"] = uid_of(obj)
        for name in NUMBERED:
            deployment = await client.get(DEPLOYMENT, Key(namespace, name))
            found[f"generation of {name}"] = generation_of(deployment)
        async with self.shoot.landscape.client_of(self.shoot.key, self.shoot.seed) as shoot:
            for node in await shoot.list(NODE):
                found[f"Node {name_of(node)}"] = uid_of(node)
        return found


def typed(heading: str) -> list[tuple[str, str]]:
    """Return the blocks below a heading of the page, each with its cluster, for this Shoot."""
    found = [each.text for each in blocks(MIGRATION) if each.heading == heading]
    return [cluster_of(text) for text in found]


def cluster_of(text: str) -> tuple[str, str]:
    """Return the cluster that a block is typed in, which its first line names, and the block."""
    first, _, rest = text.partition("\n")
    match = re.fullmatch(r"# in the cluster of the (Extensions|Shoots|Seed)", first)
    assert match is not None, text
    return {"Extensions": "runtime", "Shoots": "garden", "Seed": "seed"}[match[1]], rest


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def handover(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Handover]:
    """Yield a Shoot that the original created, in a landscape of its own."""
    folder = tmp_path_factory.mktemp("original")
    async with (
        account_in_aws() as aws,
        aws.client(REGION) as account,
        living_landscape(f"original-{os.getpid()}", folder, aws=aws.url) as landscape,
    ):
        await landscape.install_original("provider-aws")
        await landscape.install("networking-calico")
        programs = in_aws(aws.url, PROVIDER_AWS)
        async with landscape.opened_seed("aws", programs=programs) as seed:
            await landscape.join(seed)
            await write_extension(landscape, aws, folder)
            pools = (pool("one", minimum=2, maximum=2, zones=[*ZONES[:2]]),)
            shoot = await create_shoot_with_machines(landscape, account, seed, "aws", *pools)
            yield Handover(aws, shoot, *await shells(landscape, seed, folder))
            await landscape.delete(SHOOT, shoot.key)


async def write_extension(landscape: World, aws: CorrectedAws, folder: Path) -> None:
    """Write the Extension that the page applies, with the charts of this landscape."""
    obj: JsonObject = await landscape.clusters.extension(
        "pergola-aws", {"AWS_ENDPOINT_URL": aws.url}
    )
    file = folder / "examples/extensions/pergola-aws.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(dump(obj))


async def shells(landscape: World, seed: SeedCluster, folder: Path) -> tuple[Shell, Shell, Shell]:
    """Return shells for the cluster of the Extensions, that of the Shoots, and that of the Seed."""
    return (
        Shell(landscape.clusters.garden.sandbox.kubeconfig, folder),
        Shell(await landscape.kubeconfig(folder), folder),
        Shell(seed.site.sandbox.kubeconfig, folder),
    )


async def test_a_shoot_changes_to_pergola_kind_by_kind_and_back(handover: Handover) -> None:
    await handover.shoot.until_nodes_run(2)
    before = await handover.picture()
    for heading in HEADINGS:
        written = await handover.follow(heading)
        after = await handover.picture()
        changed = {name: value for name, value in before.items() if after.get(name) != value}
        assert not changed, heading
        assert heading == HEADINGS[-1] or not written, heading
