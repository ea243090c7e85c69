"""Faults that tests can cause in a private sandbox."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, Unreachable
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox, SandboxError

KEY = Key("default", "kept")


@pytest.fixture
async def client(private_sandbox: Sandbox) -> AsyncIterator[Client]:
    async with Client.connect(load(private_sandbox.kubeconfig)) as client:
        yield client


@pytest.mark.soak("chaos")
async def test_the_api_server_can_be_restarted_paused_and_killed(
    private_sandbox: Sandbox, client: Client
) -> None:
    await client.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        }
    )
    server = private_sandbox.state()["server"]

    await private_sandbox.restart_apiserver()
    assert await client.get(CONFIG_MAP, KEY)
    assert private_sandbox.state()["server"] == server

    await private_sandbox.pause("kube-apiserver")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await client.get(CONFIG_MAP, KEY)
    await private_sandbox.resume("kube-apiserver")
    assert await client.get(CONFIG_MAP, KEY)

    await private_sandbox.kill("kube-apiserver")
    with pytest.raises(Unreachable):
        await client.get(CONFIG_MAP, KEY)
    await private_sandbox.restart("kube-apiserver")
    assert await client.get(CONFIG_MAP, KEY)

    await private_sandbox.pause("etcd")
    with pytest.raises((TimeoutError, KubeError)):
        async with asyncio.timeout(0.5):
            await client.patch(CONFIG_MAP, KEY, {"data": {"a": "b"}})
    await private_sandbox.resume("etcd")
    assert await client.get(CONFIG_MAP, KEY)

    with pytest.raises(SandboxError, match="this sandbox has no component 'kubelet'"):
        await private_sandbox.kill("kubelet")
