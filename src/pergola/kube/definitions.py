"""Preparing the deletion of CustomResourceDefinitions, which kube-apiserver may delay for minutes.

The API server deletes the instances of a definition first. If no client has read any, its storage
of them is not set up yet, and the first attempt fails. The second attempt, a few milliseconds
later, may conflict with the status written by the first one. It then waits for a change that it has
already processed, until the resync of all definitions five minutes later.
"""

import asyncio
from contextlib import suppress
from typing import Final

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.kube.client import Client
from pergola.kube.discovery import group_version_path
from pergola.kube.errors import KubeError, NotFound

# A list with a selector is answered once the storage is set up; this one selects nothing.
_NONE: Final = "labelSelector=resources.gardener.cloud%2Fselects%3Dnothing"
_SECONDS: Final = 5.0
_PAUSE: Final = 0.1
"""The pause between two lists in seconds: the moment from which a kind is served has no watch."""


async def set_up_storage(client: Client, definition: JsonObject) -> None:
    """Make the API server set up its storage for a definition's instances.

    A definition that was just created may not be served yet; this takes up to five seconds. If the
    API server refuses, it still deletes the definition, only perhaps later.
    """
    spec = map_at(definition, "spec")
    served = [each for each in maps_at(spec, "versions") if each.get("served")]
    if not served or _is_refused(definition):
        return
    # Each version has its own storage; deletion reads that of the stored version.
    version = next((each for each in served if each.get("storage")), served[0])
    root = group_version_path(str(spec.get("group") or ""), str(version.get("name") or ""))
    path = f"{root}/{map_at(spec, 'names').get('plural')}?{_NONE}"
    with suppress(KubeError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            while not await _is_listed(client, path):  # noqa: ASYNC110 - nothing to watch
                await asyncio.sleep(_PAUSE)


def _is_refused(definition: JsonObject) -> bool:
    """Return whether another definition has the names, so that this one is never served."""
    return any(
        (condition.get("type"), condition.get("status")) == ("NamesAccepted", "False")
        for condition in maps_at(definition, "status", "conditions")
    )


async def _is_listed(client: Client, path: str) -> bool:
    try:
        await client.get_raw(path)
    except NotFound:
        return False
    return True
