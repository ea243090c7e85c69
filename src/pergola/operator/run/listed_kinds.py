"""Waiting until clients can find a newly defined kind.

The API server lists a kind shortly after its definition is established, on a busy machine seconds
later. Until then, clients that look it up do not find it.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.garden.landscape.errors import NotReady
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind

_SECONDS: Final = 0.3
"""The pause between two checks: the discovery of an API server cannot be watched."""


async def until_listed(client: Client, definition: JsonObject, limit: float) -> None:
    """Wait until the API server lists all versions of a kind.

    Args:
        limit: In seconds.

    Raises:
        NotReady: A version is not listed in time.
        KubeError: The API server refused, or did not answer.
    """
    try:
        async with asyncio.timeout(limit) as deadline:
            for gvk in _versions(definition):
                while not await _is_listed(client, gvk):  # noqa: ASYNC110 - nothing to watch
                    await asyncio.sleep(_SECONDS)
    except TimeoutError:
        if not deadline.expired():
            raise
        problem = "the API server does not list its kind"
        raise NotReady(CRD.kind, Key.of(definition), limit, problem) from None


async def _is_listed(client: Client, gvk: GroupVersionKind) -> bool:
    try:
        await client.resource(gvk)
    except UnknownKind:
        return False
    return True


def _versions(definition: JsonObject) -> Iterator[GroupVersionKind]:
    spec = map_at(definition, "spec")
    kind = map_at(spec, "names").get("kind", "")
    for version in maps_at(spec, "versions"):
        if version.get("served"):
            yield GroupVersionKind(spec["group"], version["name"], kind)
