"""The rollout of a new encryption key to an API server, in two stages (spec 20 §17.3).

First, every replica learns the new key but still encrypts with the old one. A replica cannot read
what another one encrypted with a key that it does not know, so only then is the new key used for
encryption.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, maps_at
from pergola.garden.components.api_server.encryption import encryption_phase, key_name
from pergola.garden.components.api_server.part import ApiServer
from pergola.garden.components.component import Clusters, Rendered, Stage
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.encryption_at_rest import ENCRYPTION_VOLUME, POPULATED
from pergola.garden.landscape.phases import PREPARED, PREPARING
from pergola.kube.client import Client
from pergola.runtime.logging import get_logger

log = get_logger("rotation")

_LIMIT: Final = 300.0


async def learn_encryption(
    landscape: Landscape, clusters: Clusters, server: ApiServer
) -> Landscape:
    """Learn how an API server encrypts now, which shows whether a key is lost.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    live = await clusters.client.find(DEPLOYMENT, _key(server)) or {}
    return replace(
        landscape,
        is_new_key_known=POPULATED in annotations_of(live),
        encryption_configuration=_configuration(live),
    )


def second_stage(
    server_of: Callable[[Landscape], ApiServer], render: Callable[[Landscape], Rendered]
) -> Stage:
    """Return the stage that encrypts with the new key, once all replicas know it.

    Outside of a rotation it removes the mark of the last one, and has nothing to render.
    """

    async def learn(landscape: Landscape, clusters: Clusters) -> Landscape | None:
        server = server_of(landscape)
        phase = encryption_phase(landscape)
        if phase not in (PREPARING, PREPARED):
            await _remove_mark(clusters.client, server)
            return None
        is_old_kept = landscape.credentials.old(key_name(server)) is not None
        if phase == PREPARED or landscape.is_new_key_known or not is_old_kept:
            return None
        await clusters.wait_ready(render(landscape).annotated(), _LIMIT)
        patch = {"metadata": {"annotations": {POPULATED: "true"}}}
        await clusters.client.patch(DEPLOYMENT, _key(server), patch)
        log.info("new encryption key known", deployment=server.deployment)
        return replace(landscape, is_new_key_known=True)

    return Stage(learn=learn, render=render)


async def _remove_mark(client: Client, server: ApiServer) -> None:
    live = await client.find(DEPLOYMENT, _key(server), metadata_only=True)
    if POPULATED in annotations_of(live or {}):
        patch = {"metadata": {"annotations": {POPULATED: None}}}
        await client.patch(DEPLOYMENT, _key(server), patch)


def _configuration(deployment: JsonObject) -> str:
    """Return the Secret that an API server mounts as its encryption configuration, or empty."""
    for volume in maps_at(deployment, "spec", "template", "spec", "volumes"):
        if volume.get("name") == ENCRYPTION_VOLUME:
            return str(map_at(volume, "secret").get("secretName") or "")
    return ""


def _key(server: ApiServer) -> Key:
    return Key(NAMESPACE, server.deployment)
