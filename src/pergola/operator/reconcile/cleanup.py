"""Cleanup after the components of a Garden are gone (spec 20 §18)."""

from contextlib import suppress
from typing import Final

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import GroupVersionKind, Key, uid_of
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.selectors import format_selector
from pergola.operator.reconcile.build import IDENTITY
from pergola.operator.reconcile.global_password import REPLICA
from pergola.runtime.clock import Clock
from pergola.secrets_manager import SecretsManager

_UNIQUE: Final = {"resources.gardener.cloud/garbage-collectable-reference": "true"}


async def delete_credentials(client: Client, clock: Clock) -> None:
    """Delete all Secrets of the operator's secrets manager.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    manager = await SecretsManager.open(client, NAMESPACE, IDENTITY, clock=clock)
    await manager.cleanup()
    await _delete_all(client, SECRET, REPLICA)


async def delete_unique_objects(client: Client) -> None:
    """Delete the ConfigMaps and Secrets that a garbage collector would otherwise have deleted.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    for kind in (CONFIG_MAP, SECRET):
        await _delete_all(client, kind, _UNIQUE)


async def _delete_all(client: Client, kind: GroupVersionKind, labels: dict[str, str]) -> None:
    selector = format_selector({"matchLabels": labels})
    for obj in await client.list(kind, NAMESPACE, labels=selector, metadata_only=True):
        with suppress(NotFound):
            await client.delete(kind, Key.of(obj), uid=uid_of(obj))
