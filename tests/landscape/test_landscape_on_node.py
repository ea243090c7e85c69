"""A landscape as `pergola up` creates it with root: its Seed has a real node."""

import asyncio
import os
import re
import signal
import sys
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import NAMESPACE, POD
from pergola.api.objects import JsonObject, map_at, maps_at, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import find
from pergola.sandbox.images.catalogue import SEED_IMAGES
from pergola.testing.shared import require_images, require_node

pytestmark = [pytest.mark.node, pytest.mark.soak("landscape-node"), pytest.mark.timeout(2400)]

PERGOLA: Final = Path(sys.executable).parent / "pergola"
SHOOT: Final = "shoot--local--first"
VARIABLES: Final = re.compile(r"\b(SEED|SHOOT)=(\S+)")


@pytest.fixture(autouse=True)
def requirements() -> None:
    require_node()
    require_images(*SEED_IMAGES)


async def test_a_seed_on_a_real_node_serves_a_shoot_by_the_originals_programs() -> None:
    async with brought_up() as (seed, shoot):
        async with Client.connect(load(seed)) as client:
            programs = [*await running(client, "garden"), *await running(client, SHOOT)]
            for resource in await client.list(MANAGED_RESOURCE):
                conditions = maps_at(resource, "status", "conditions")
                states = {each["type"]: each["status"] for each in conditions}
                assert states["ResourcesApplied"] == "True", name_of(resource)
        for each in ("etcd-druid", "vpa-updater", "prometheus", "etcd-wrapper", "etcdbrctl"):
            assert any(each in image for image in programs), each
        async with Client.connect(load(shoot)) as client:
            assert len(await client.list(NAMESPACE)) > 3


@asynccontextmanager
async def brought_up() -> AsyncGenerator[tuple[Path, Path]]:
    """Run `pergola up` until it has shown everything, and interrupt it when the block ends.

    Yields:
        Kubeconfigs of the Seed and the Shoot.
    """
    name = f"land-{uuid.uuid4().hex[:8]}"
    process = await asyncio.create_subprocess_exec(
        *(PERGOLA, "up", "--only", "landscape", "--name", name),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": "400"},
    )
    assert process.stdout is not None
    lines: list[str] = []
    try:
        async for line in process.stdout:
            lines.append(line.decode())
            if "Everything keeps running" in lines[-1]:
                break
        printed = "".join(lines)
        found = dict(VARIABLES.findall(printed))
        assert found.keys() == {"SEED", "SHOOT"}, printed
        assert "The Seed gets a real node" in printed
        yield Path(found["SEED"]), Path(found["SHOOT"])
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        await process.communicate()
    assert await process.wait() == 0
    assert find(f"{name}-garden") is find(f"{name}-seed") is None


async def running(client: Client, namespace: str) -> list[str]:
    """Return the images of the containers that run in a namespace."""
    return [
        container["image"]
        for pod in await client.list(POD, namespace)
        if is_ready(pod)
        for container in maps_at(pod, "spec", "containers")
    ]


def is_ready(pod: JsonObject) -> bool:
    conditions = {each["type"]: each["status"] for each in map_at(pod, "status")["conditions"]}
    return conditions.get("Ready") == "True"
