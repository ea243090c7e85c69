"""Namespaces for tests: fresh, named after their test, and deleted afterwards."""

import asyncio
import contextlib
import re
import secrets
from typing import Final

from pergola.api.bastion_v1alpha1 import BASTION
from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.kinds import NAMESPACE, SECRET, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, Key, finalizers_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind

_HELD: Final = (
    SECRET,
    MANAGED_RESOURCE,
    NETWORK,
    INFRASTRUCTURE,
    BASTION,
)
"""The kinds on which Pergola's controllers put finalizers."""
_LONGEST: Final = 40  # characters of the test's name
_LIMIT: Final = 180.0
_INTERVAL: Final = 0.02


async def create_namespace(client: Client, test: str) -> str:
    """Create a namespace named after a test.

    Returns once its `default` ServiceAccount exists, which pods require.
    """
    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:_LONGEST].strip("-")
    name = f"{words or 'test'}-{secrets.token_hex(3)}"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    async with asyncio.timeout(_LIMIT):
        while not await _has_service_account(client, name):  # noqa: ASYNC110 - it is elsewhere
            await asyncio.sleep(_INTERVAL)
    return name


async def delete_namespace(client: Client, name: str) -> None:
    """Delete a namespace in the background.

    Removes finalizers whose controllers ended with the test: a namespace that cannot be deleted
    costs the server hundreds of requests a minute while the sandbox lives.
    """
    await asyncio.gather(*(_release(client, gvk, name) for gvk in _HELD))
    with contextlib.suppress(NotFound):  # the test may have done it
        await client.delete(NAMESPACE, Key("", name))


async def _release(client: Client, gvk: GroupVersionKind, namespace: str) -> None:
    with contextlib.suppress(UnknownKind):
        for obj in await client.list(gvk, namespace, metadata_only=True):
            if finalizers_of(obj):
                with contextlib.suppress(NotFound):  # it was the last finalizer, or is just gone
                    await client.patch(gvk, Key.of(obj), {"metadata": {"finalizers": None}})


async def _has_service_account(client: Client, namespace: str) -> bool:
    try:
        await client.get(SERVICE_ACCOUNT, Key(namespace, "default"))
    except NotFound:
        return False
    return True
