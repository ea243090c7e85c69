"""Seeds of a virtual cluster, and gardenlets that perform every operation at once."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

from pergola.api.kinds import SEED
from pergola.api.marks import OPERATION
from pergola.api.objects import JsonObject, annotations_of
from pergola.kube import states
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.manifests import manifest
from pergola.operator.extension.installations import REGISTRATION

_DNS: Final[dict[str, Any]] = {
    "type": "local",
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "dns", "namespace": "garden"},
}
SPEC: Final[dict[str, Any]] = {
    "provider": {"type": "local", "region": "local", "zones": ["local"]},
    "networks": {"pods": "10.64.0.0/15", "services": "10.0.0.0/16"},
    "ingress": {"domain": "ingress.seed.example.com", "controller": {"kind": "nginx"}},
    "dns": {"provider": _DNS, "internal": {**_DNS, "domain": "internal.example.com"}},
}
"""The specification of a Seed that Gardener's API server accepts."""
_REQUIRED: Final = ("ControlPlane", "DNSRecord", "Infrastructure", "Worker")
_UNREACHABLE: Final = {"seed.gardener.cloud/network": "private"}


async def register_provider(virtual: Client) -> None:
    """Create what Gardener's API server requires of the provider of a Seed."""
    resources = [{"kind": kind, "type": "local", "primary": True} for kind in _REQUIRED]
    await virtual.create(manifest("v1", "Secret", "dns", namespace="garden"))
    await virtual.create(
        manifest(
            REGISTRATION.api_version, REGISTRATION.kind, "local", spec={"resources": resources}
        )
    )


def private_seed(name: str) -> JsonObject:
    """Return a Seed that no component of a Garden names."""
    return manifest(SEED.api_version, SEED.kind, name, labels=_UNREACHABLE, spec=SPEC)


@asynccontextmanager
async def gardenlets(client: Client, *, absent: Collection[str] = ()) -> AsyncGenerator[None]:
    """Take each requested operation off its Seed while the block lasts.

    Args:
        absent: The names of Seeds whose gardenlets are gone.
    """
    task = asyncio.create_task(_perform(client, absent))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _perform(client: Client, absent: Collection[str]) -> None:
    async with aclosing(states.all_watched(client, SEED)) as collections:
        async for collection in collections:
            for key, seed in collection.items():
                if OPERATION in annotations_of(seed) and key.name not in absent:
                    with suppress(NotFound):
                        patch = {"metadata": {"annotations": {OPERATION: None}}}
                        await client.patch(SEED, key, patch)
