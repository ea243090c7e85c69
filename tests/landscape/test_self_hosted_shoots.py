"""A self-hosted Shoot by the original's gardenadm, as far as it needs no machine.

gardenadm reads what the Shoot requires from the Garden. In a cluster with Pergola as resource
manager, it installs provider-local, which makes the first machine, and it prepares the migration to
that machine. Then it connects to a bastion with SSH: there is nothing to connect to.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import GroupVersionKind, Key, map_at, maps_at, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.kinds import GROUP, VERSION, WORKER
from pergola.kube.client import Client
from pergola.kube.yaml import dump
from pergola.sandbox import binaries
from pergola.sandbox.directory import write
from pergola.sandbox.landscape import create_prerequisites, register
from pergola.sandbox.on_demand import GARDENADM
from pergola.testing.waiting import until
from tests.support.landscape import PATIENCE, World
from tests.support.landscape_provider_local import MACHINE, has_succeeded, provider_secret

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_NAMESPACE: Final = "shoot--local--self-hosted"
_BASTION: Final = GroupVersionKind(GROUP, VERSION, "Bastion")
_LAST_TASK: Final = "Compiling ShootState"
_SUCCEEDED: Final = re.compile(r"INFO\tSucceeded\t.*\"task\": \"([^\"]+)\"")
_FAILED: Final = "\tERROR\t"
_TASKS: Final = {
    "Waiting until gardener-resource-manager reports readiness",
    "Waiting until Shoot infrastructure has been reconciled",
    "Waiting until OperatingSystemConfig for worker pools have been reconciled",
    "Waiting until worker pools have been reconciled",
    "Listing control plane machines",
    "Deploying DNSRecord pointing to the first control plane machine",
    "Preparing extension resources for migration to self-hosted shoot",
    _LAST_TASK,
}


async def test_gardenadm_prepares_a_machine_for_a_control_plane(
    landscape_of_provider_local: World, tmp_path: Path
) -> None:
    landscape = landscape_of_provider_local
    async with landscape.opened_seed("bootstrap", provider_local=True) as cluster:
        await register(landscape.garden, provider_local=True)
        await landscape.garden.apply(provider_secret(cluster), manager="test", force=True)
        shoot = await create_prerequisites(landscape.garden, "self-hosted-shoot.yaml")
        manifest = write(tmp_path / "shoot.yaml", dump(shoot))
        garden = await landscape.kubeconfig(tmp_path)
        printed = await discovered(garden, manifest)
        assert "Exported ControllerDeployment/provider-local" in printed

        kubeconfig, client = cluster.site.sandbox.kubeconfig, cluster.site.client
        done = set()
        async with bootstrapping(kubeconfig, tmp_path) as tasks, aclosing(tasks):
            async for task in tasks:
                done.add(task)
                if task == _LAST_TASK:
                    break
            # gardenadm waits for it, and then for its SSH server.
            await until_succeeded(client, _BASTION)
        assert done >= _TASKS
        [machine] = await client.list(MACHINE, _NAMESPACE)
        assert map_at(machine, "status", "lastOperation")["state"] == "Successful"
        [worker] = await client.list(WORKER, _NAMESPACE)
        assert map_at(worker, "status", "lastOperation")["type"] == "Migrate"
        for resource in await client.list(MANAGED_RESOURCE, _NAMESPACE):
            conditions = maps_at(resource, "status", "conditions")
            states = {each["type"]: each["status"] for each in conditions}
            assert states["ResourcesApplied"] == states["ResourcesHealthy"] == "True", name_of(
                resource
            )
        assert cluster.refused() == []


async def discovered(garden: Path, manifest: Path) -> str:
    """Let gardenadm read what a Shoot requires from the Garden, and return what it prints."""
    line = ("discover", "new", f"--manifest={manifest}", f"--kubeconfig={garden}")
    process = await asyncio.create_subprocess_exec(
        str(binaries.find((GARDENADM,))[GARDENADM]),
        *line,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return printed.decode()


@asynccontextmanager
async def bootstrapping(
    kubeconfig: Path, directory: Path
) -> AsyncGenerator[AsyncGenerator[str, None]]:
    """Run gardenadm on a cluster; yield the names of the tasks that succeed, and end it."""
    process = await asyncio.create_subprocess_exec(
        str(binaries.find((GARDENADM,))[GARDENADM]),
        *("bootstrap", f"--config-dir={directory}", f"--kubeconfig={kubeconfig}"),
        "--bastion-ingress-cidr=127.0.0.1/32",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "KUBECONFIG": ""},
    )
    try:
        yield _succeeded(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _succeeded(process: asyncio.subprocess.Process) -> AsyncGenerator[str, None]:
    assert process.stdout is not None
    lines: list[str] = []
    async for line in process.stdout:
        lines.append(line.decode())
        if found := _SUCCEEDED.search(lines[-1]):
            yield found[1]
        elif _FAILED in lines[-1]:
            break
    pytest.fail("".join(lines[-20:]))


async def until_succeeded(client: Client, kind: GroupVersionKind) -> None:
    """Wait until the only extension resource of a kind is reconciled."""
    [found] = await client.list(kind, _NAMESPACE)
    await until(client, kind, Key.of(found), has_succeeded, patience=PATIENCE)
