"""Cleanup after the components of a Garden are gone (spec 20 §18)."""

from contextlib import suppress
from typing import Final

from pergola.api.conditions import FALSE
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import GroupVersionKind, Key, uid_of
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.api.operator_v1alpha1.extension import REQUIRED_VIRTUAL
from pergola.garden.components.observability.global_password import REPLICA
from pergola.garden.components.virtual_access import KUBECONFIG
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind
from pergola.kube.selectors import format_selector
from pergola.operator.conditions import Conditions, condition_of
from pergola.operator.run.build import IDENTITY
from pergola.runtime.clock import Clock
from pergola.secrets_manager import SecretsManager
from pergola.secrets_manager.managed import MANAGED_BY, MANAGER, NAME

_UNIQUE: Final = {"resources.gardener.cloud/garbage-collectable-reference": "true"}


async def delete_credentials(client: Client, clock: Clock) -> None:
    """Delete all Secrets of the operator's secrets manager.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    manager = await SecretsManager.open(client, NAMESPACE, IDENTITY, clock=clock)
    await manager.cleanup()
    await _delete_all(client, SECRET, REPLICA)


async def delete_generic_kubeconfig(client: Client) -> None:
    """Delete the kubeconfig that programs in the runtime cluster share.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    await _delete_all(client, SECRET, {NAME: KUBECONFIG, MANAGED_BY: MANAGER})


async def delete_unique_objects(client: Client) -> None:
    """Delete the ConfigMaps and Secrets that a garbage collector would otherwise have deleted.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    for kind in (CONFIG_MAP, SECRET):
        await _delete_all(client, kind, _UNIQUE)


async def patch_garden_deleted(client: Client, clock: Clock) -> None:
    """Report on all Extensions that no Seed requires them any longer: the virtual cluster is gone.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    conditions = Conditions(client, EXTENSION, clock)
    try:
        extensions = await client.list(EXTENSION)
    except UnknownKind:
        return
    for extension in extensions:
        if condition_of(extension, REQUIRED_VIRTUAL).get("status", FALSE) != FALSE:
            text = "Virtual cluster has been destroyed"
            await conditions.patch(
                Key.of(extension), REQUIRED_VIRTUAL, FALSE, "GardenDeleted", text
            )


async def _delete_all(client: Client, kind: GroupVersionKind, labels: dict[str, str]) -> None:
    selector = format_selector({"matchLabels": labels})
    for obj in await client.list(kind, NAMESPACE, labels=selector, metadata_only=True):
        with suppress(NotFound):
            await client.delete(kind, Key.of(obj), uid=uid_of(obj))
