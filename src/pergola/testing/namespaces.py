"""Namespaces for tests: fresh, telling whose they were, and gone afterwards."""

import asyncio
import contextlib
import re
import secrets
from typing import Final

from pergola.api.objects import GroupVersionKind, Key
from pergola.kube.client import Client
from pergola.kube.errors import NotFound

_NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
_SERVICE_ACCOUNT: Final = GroupVersionKind("", "v1", "ServiceAccount")
_LONGEST: Final = 40  # characters of the test's name
_LIMIT: Final = 20.0
_INTERVAL: Final = 0.02


async def create_namespace(client: Client, test: str) -> str:
    """Creates a namespace that is named after a test.

    Returns when its `default` ServiceAccount is there, without which no pod can be created.
    """
    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:_LONGEST].strip("-")
    name = f"{words or 'test'}-{secrets.token_hex(3)}"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    async with asyncio.timeout(_LIMIT):
        while not await _has_service_account(client, name):  # noqa: ASYNC110 - it is elsewhere
            await asyncio.sleep(_INTERVAL)
    return name


async def delete_namespace(client: Client, name: str) -> None:
    """Asks the API server to delete a namespace, which then happens in the background."""
    with contextlib.suppress(NotFound):  # the test may have done it
        await client.delete(_NAMESPACE, Key("", name))


async def _has_service_account(client: Client, namespace: str) -> bool:
    try:
        await client.get(_SERVICE_ACCOUNT, Key(namespace, "default"))
    except NotFound:
        return False
    return True
