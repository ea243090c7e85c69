"""Clients that authenticate as a ServiceAccount instead of the administrator."""

import asyncio
from dataclasses import replace
from typing import Final

import orjson

from pergola.api.objects import GroupVersionKind
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.errors import Forbidden, Unauthorized
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.transport import Transport

_INTERVAL: Final = 0.2
_LIMIT: Final = 180.0


async def service_account_config(
    admin: ClusterConfig, namespace: str, name: str = "default"
) -> ClusterConfig:
    """Return a config for the same cluster as a ServiceAccount, with a requested token."""
    token = await request_token(admin, namespace, name)
    return replace(admin, credentials=StaticToken(token), context=f"{namespace}/{name}")


async def request_token(admin: ClusterConfig, namespace: str, name: str) -> str:
    """Return a new token of a ServiceAccount."""
    transport = Transport(admin)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    try:
        answer = await transport.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            body=orjson.dumps(request),
        )
    finally:
        await transport.close()
    return str(orjson.loads(answer)["status"]["token"])


async def until_allowed(
    client: Client, gvk: GroupVersionKind, namespace: str | None = None
) -> None:
    """Wait until the client may list a kind: the authorizer learns of new Roles by watching."""
    async with asyncio.timeout(_LIMIT):
        while True:
            try:
                await client.list(gvk, namespace, metadata_only=True)
            except Forbidden:
                await asyncio.sleep(_INTERVAL)
            else:
                return


async def until_rejected(config: ClusterConfig) -> None:
    """Wait until the API server rejects these credentials.

    It caches for ten seconds that a token was good, even after its ServiceAccount was deleted.
    """
    async with asyncio.timeout(_LIMIT), Client.connect(config) as client:
        while True:
            try:
                await client.get_raw("/version")
            except Unauthorized:
                return
            await asyncio.sleep(_INTERVAL)
