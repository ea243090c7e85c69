"""The rollout of a new encryption key to an API server, in two steps (spec 20 §17.3).

First, every replica learns the new key but still encrypts with the old one. A replica cannot read
what another one encrypted with a key that it does not know, so only then is the new key used for
encryption.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import Key, annotations_of
from pergola.garden.components.api_server.encryption import key_name
from pergola.garden.components.api_server.part import ApiServer
from pergola.garden.components.component import Component
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.encryption_at_rest import POPULATED
from pergola.kube.client import Client
from pergola.operator.rotation.current import ENCRYPTION_KEY, phase_of
from pergola.operator.rotation.phases import PREPARED, PREPARING
from pergola.operator.run.run import Run
from pergola.runtime.logging import get_logger

log = get_logger("rotation")

_NEEDED: Final = (PREPARING, PREPARED)


async def deploy(
    run: Run, component: Component, server: ApiServer, apply: Callable[[], Awaitable[None]]
) -> None:
    """Deploy an API server; during a rotation of its key, wait for the first of the two steps.

    Args:
        apply: Applies its objects for the current landscape.

    Raises:
        NotReady: Its replicas did not get the new key in time.
        KubeError: The API server refused, or did not answer.
    """
    await apply()
    landscape = run.current()
    phase = phase_of(landscape, ENCRYPTION_KEY)
    if phase not in _NEEDED:
        await _patch_unmarked(run.client, server)
        return
    is_known = server.deployment in landscape.new_key_known_by
    if phase == PREPARED or is_known or landscape.credentials.old(key_name(server)) is None:
        return
    await run.deployer.wait(component.objects(landscape), component.limit)
    patch = {"metadata": {"annotations": {POPULATED: "true"}}}
    await run.client.patch(DEPLOYMENT, _key(server), patch)
    log.info("new encryption key known", deployment=server.deployment)
    # The task of another API server may have added itself meanwhile.
    run.update(new_key_known_by=run.current().new_key_known_by | {server.deployment})
    await apply()


async def _patch_unmarked(client: Client, server: ApiServer) -> None:
    live = await client.find(DEPLOYMENT, _key(server), metadata_only=True)
    if POPULATED in annotations_of(live or {}):
        patch = {"metadata": {"annotations": {POPULATED: None}}}
        await client.patch(DEPLOYMENT, _key(server), patch)


def _key(server: ApiServer) -> Key:
    return Key(NAMESPACE, server.deployment)
