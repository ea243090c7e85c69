"""Tests with a real control plane: `pergola.testing` and `pergola.sandbox`."""

from functools import partial
from pathlib import Path

from pergola.api import GroupVersionKind, Key
from pergola.api.schema import Object, Value, kind
from pergola.kube import Client
from pergola.manifests import manifest
from pergola.runtime import Cache, Unit
from pergola.sandbox import API_ONLY, Sandbox, find, silent, start, stop
from pergola.testing import (
    give_shoot_access,
    install_kinds,
    running,
    settled,
    shoot_manager,
    until,
    until_gone,
)
from pergola.testing.extension_site import (
    ExtensionSite,
    RecordingActuator,
    extension_site,
    recording_actuator,
)


class LampSpec(Value):
    """A lamp."""

    on: bool = False


@kind("example.com/v1")
class Lamp(Object):
    """A kind of your own."""

    spec: LampSpec


async def waiting(client: Client, namespace: str) -> None:
    """Install a kind, and wait for states instead of for time."""
    await install_kinds(client, Lamp)
    gvk, key = GroupVersionKind.parse(Lamp.resource.api_version, "Lamp"), Key(namespace, "desk")
    await client.create(manifest(gvk.api_version, "Lamp", "desk", namespace=namespace, spec={}))
    cache = Cache(client, gvk, bool, namespace=namespace)
    async with running(Unit("lamps", caches=[cache])):
        await client.patch(gvk, key, {"spec": {"on": True}})
        await until(client, gvk, key, lambda lamp: lamp["spec"]["on"] is True)
        await client.delete(gvk, key)
        await until_gone(client, gvk, key)


async def sandboxes() -> None:
    """Start a control plane by hand; pytest's fixtures do it for tests."""
    assert find("nowhere") is None
    assert not await stop("nowhere")
    begin = partial(start, "mine", components=API_ONLY, progress=silent)

    async def kubeconfig() -> Path:
        sandbox: Sandbox = await begin()
        return sandbox.kubeconfig

    assert callable(kubeconfig)


async def shoots(client: Client, kubeconfig: Path) -> None:
    """Run what a Shoot needs in tests of extensions."""

    async def test(namespace: str, shoot: Client) -> None:
        await give_shoot_access(client, namespace, kubeconfig)
        async with shoot_manager(client, namespace, shoot) as manager:
            await settled(manager, client)

    assert callable(test)


async def extensions(client: Client, namespace: str) -> None:
    """Prepare a namespace with an extension resource, and an actuator that records calls."""
    actuator = recording_actuator("example")
    assert isinstance(actuator, RecordingActuator)

    async def site() -> ExtensionSite:
        return await extension_site(client, namespace, "example")

    assert callable(site)
