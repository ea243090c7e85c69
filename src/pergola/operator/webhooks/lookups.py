"""Reads for the operator's webhooks; always live, because the reviewed writes are rare."""

from typing import Protocol

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind


class Lookups(Protocol):
    """Reads for all handlers; each method may raise KubeError."""

    async def gardens(self) -> list[JsonObject]:
        """Return all Gardens; an empty list if the API server does not serve the kind."""
        ...

    async def extensions(self) -> list[JsonObject]:
        """Return the operator's Extensions; an empty list if the kind is not served."""
        ...

    async def config_map(self, key: Key) -> JsonObject | None:
        """Return a ConfigMap, or None if it does not exist."""
        ...


class ClusterLookups:
    """Reads from the runtime cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def gardens(self) -> list[JsonObject]:
        """Return all Gardens; an empty list if the API server does not serve the kind."""
        try:
            return await self._client.list(GARDEN)
        except UnknownKind:
            return []

    async def extensions(self) -> list[JsonObject]:
        """Return the operator's Extensions; an empty list if the kind is not served."""
        try:
            return await self._client.list(EXTENSION)
        except UnknownKind:
            return []

    async def config_map(self, key: Key) -> JsonObject | None:
        """Return a ConfigMap, or None if it does not exist."""
        try:
            return await self._client.get(CONFIG_MAP, key)
        except NotFound:
            return None
