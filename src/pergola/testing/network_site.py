"""A seed's namespace with a Network, and another cluster that is its Shoot.

```python
async with shoot_manager(client, namespace, shoot):
    ...  # ManagedResources of the namespace are applied to `shoot`
```
"""

import asyncio
import base64
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from pergola.api.objects import JsonObject, map_at
from pergola.extensions.actuator import Actuator
from pergola.extensions.shoot_access import INTERNAL
from pergola.kube.client import Client
from pergola.resource_manager.controllers.health import Settings as HealthSettings
from pergola.resource_manager.manager import Options, ResourceManager

A = TypeVar("A", bound=Actuator)

_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@asynccontextmanager
async def shoot_manager(
    seed: Client, namespace: str, shoot: Client, *, sync_seconds: float = 60.0
) -> AsyncGenerator[ResourceManager]:
    """Run a Shoot's resource manager for one namespace of the seed until the block ends."""
    options = Options(
        source_namespaces=(namespace,), health=HealthSettings(sync_period=sync_seconds)
    )
    manager = ResourceManager(seed, shoot, options)
    running = asyncio.create_task(manager.run())
    try:
        await manager.source.synced()
        yield manager
    finally:
        running.cancel()
        [outcome] = await asyncio.gather(running, return_exceptions=True)
    if isinstance(outcome, Exception):
        raise outcome


async def give_shoot_access(
    seed: Client, namespace: str, kubeconfig: Path, *, name: str = INTERNAL
) -> None:
    """Store the kubeconfig of the Shoot next to its Network, as Gardener does."""
    text = base64.b64encode(await asyncio.to_thread(kubeconfig.read_bytes)).decode()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"kubeconfig": text},
    }
    await seed.apply(secret, manager="gardenlet", force=True)


def renamed(actuator: A, of_type: str) -> A:
    """Return the same actuator for resources of another type, so that no other test runs it too."""
    actuator.__class__ = type(type(actuator).__name__, (type(actuator),), {"type": of_type})
    return actuator


def of_type(network: JsonObject, plugin: str, of_type: str, namespace: str) -> JsonObject:
    """Return a Network of a plugin, for its actuator under another name, in a namespace."""
    config = map_at(network, "spec", "providerConfig")
    if "apiVersion" in config:
        config = {**config, "apiVersion": config["apiVersion"].replace(plugin, of_type, 1)}
    spec = {**map_at(network, "spec"), "type": of_type, "providerConfig": config}
    metadata = {**map_at(network, "metadata"), "namespace": namespace}
    return {**network, "metadata": metadata, "spec": spec}


def python_of(page: Path) -> str:
    """Return the blocks of Python on a page before its tests, one after the other."""
    return "".join(_PYTHON.findall(page.read_text().partition("\n## 5. Test it\n")[0]))
