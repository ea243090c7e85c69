"""Upgrades in a living landscape."""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from pergola.api.kinds import SEED, SHOOT
from pergola.api.objects import JsonObject, Key, map_at
from pergola.cloud.aws import AwsClient
from pergola.operator.gardenlet.names import GARDENLET as GARDENLET_KIND
from pergola.sandbox import binaries
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import everything
from pergola.sandbox.landscape import Reconciliation, succeeded
from pergola.sandbox.on_demand import (
    GARDENLET,
    PREVIOUS_GARDENLET,
    PREVIOUS_GARDENLET_CHART,
    PREVIOUS_SEED_AGENT,
    SEED_AGENT,
)
from pergola.sandbox.process_node import built_program
from pergola.testing.waiting import until
from tests.support.landscape import PATIENCE, SeedCluster, World, living_landscape, uids
from tests.support.landscape_aws import (
    BACKED_UP,
    backup_secret,
    create_shoot_on_aws,
)
from tests.support.landscape_faults import own_processes

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(3600),
]


async def test_a_gardenlet_of_the_release_before_is_upgraded_and_nothing_is_lost(
    landscape: World,
) -> None:
    found = await asyncio.to_thread(binaries.find, (PREVIOUS_GARDENLET, PREVIOUS_GARDENLET_CHART))
    before, now = PREVIOUS_SEED_AGENT.version, SEED_AGENT.version
    number = before.removeprefix("v")
    chart = await landscape.clusters.charts.push(found[PREVIOUS_GARDENLET_CHART], number)
    program = built_program(GARDENLET, found[PREVIOUS_GARDENLET])
    opened = landscape.opened_seed(
        "upgraded",
        patch=of_version(before, str(chart)),
        programs={f"{GARDENLET}:{before}": program},
    )
    async with opened as seed:
        await landscape.join(seed)
        key = await landscape.shoot("lasting", seed)
        resources = await uids(seed.site.client)
        patch = of_version(now, str(landscape.clusters.chart))
        await landscape.garden.patch(GARDENLET_KIND, Key("garden", seed.name), patch)

        def is_upgraded(obj: JsonObject) -> bool:
            version = map_at(obj, "status", "gardener").get("version")
            return version == now and succeeded(Reconciliation(obj))

        await until(landscape.garden, SEED, Key("", seed.name), is_upgraded, patience=PATIENCE)
        await landscape.perform(SHOOT, key, "reconcile")
        assert resources.items() <= (await uids(seed.site.client)).items()
        await landscape.delete(SHOOT, key)
        assert seed.refused() == []
        await landscape.delete(SEED, Key("", seed.name))


async def test_pergola_of_the_commit_before_is_upgraded_and_nothing_is_lost(
    tmp_path: Path, aws: CorrectedAws, account: AwsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = tmp_path / "current"
    current.symlink_to(await asyncio.to_thread(commit_before, tmp_path / "before") / "src")
    monkeypatch.setenv("PYTHONPATH", str(current))
    name = f"upgrade-{os.getpid()}"
    async with living_landscape(name, tmp_path, aws=aws.url) as landscape:
        await landscape.install("pergola-aws", {"AWS_ENDPOINT_URL": aws.url})
        await landscape.install("networking-calico")
        await landscape.garden.create(backup_secret())
        seed = await landscape.seed("seed", patch=BACKED_UP)
        before = await everything(account)
        key = await create_shoot_on_aws(landscape, seed.name, "aws")
        made, resources = await everything(account), await uids(seed.site.client)
        upgrade(current, landscape, seed)
        await landscape.perform(SHOOT, key, "reconcile")
        await landscape.perform(SEED, Key("", seed.name), "reconcile")
        assert await everything(account) == made
        assert resources.items() <= (await uids(seed.site.client)).items()
        await landscape.delete(SHOOT, key)
        assert await everything(account) == before
        assert seed.refused() == []


def commit_before(folder: Path) -> Path:
    """Write the files of the commit before this one to a folder, and return it."""
    folder.mkdir()
    archive = subprocess.run(
        ("git", "archive", "HEAD^"), cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode != 0:
        pytest.skip("the commit before this one is not here")
    subprocess.run(("tar", "-x", "-C", str(folder)), input=archive.stdout, check=True)
    return folder


def upgrade(current: Path, landscape: World, seed: SeedCluster) -> None:
    """Replace the code of all of Pergola's processes, and let them restart with it."""
    fresh = current.with_name("fresh")
    fresh.symlink_to(ROOT / "src")
    fresh.replace(current)
    for pid, _ in own_processes(landscape, (seed,)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def of_version(version: str, chart: str) -> JsonObject:
    """Return a merge patch of a Gardenlet: the version of its program, and its chart."""
    deployment = {"image": {"tag": version}, "helm": {"ociRepository": {"ref": chart}}}
    return {"spec": {"deployment": deployment}}
