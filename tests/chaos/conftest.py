"""Fixtures: resource managers as processes to kill, and a sandbox to disturb."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_crds
from pergola.testing.world import RecordingClient, World
from tests.support.instances import Instances


@pytest.fixture
async def instances(private_sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Instances]:
    """Yield a starter of processes on the private sandbox, and kill all of them at the end."""
    instances = Instances(private_sandbox.kubeconfig, tmp_path)
    try:
        yield instances
    finally:
        await instances.kill_all()


@pytest.fixture
async def world(private_sandbox: Sandbox) -> AsyncIterator[World]:
    """Yield ManagedResources on the private sandbox, without a running resource manager."""
    config = load(private_sandbox.kubeconfig)
    async with Client.connect(config) as client, RecordingClient.connect(config) as recorder:
        await install_crds(client)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "chaos"}}
        await client.create(namespace)
        world = World(client, recorder, "chaos")
        try:
            yield world
        finally:
            await world.stop()
