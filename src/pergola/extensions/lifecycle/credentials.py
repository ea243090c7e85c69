"""Finalizers on the credentials Secrets of resources, which a deletion still needs."""

from pergola.api.kinds import SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    finalizers_of,
    uid_of,
)
from pergola.extension_api.kinds import finalizer_of
from pergola.extension_api.predicates import secret_of
from pergola.kube.client import Client
from pergola.kube.finalizers import add_finalizer, remove_finalizer


async def protect_secret(client: Client, obj: JsonObject) -> None:
    """Add the finalizer of a kind to the Secret of a resource; a missing Secret is not an error.

    Raises:
        KubeError: the API server refused.
    """
    secret = await _read(client, obj)
    finalizer = finalizer_of(obj["kind"])
    if secret is not None:
        await add_finalizer(client, SECRET, secret, finalizer)


async def release_secret(client: Client, obj: JsonObject) -> None:
    """Remove the finalizer from the Secret of a resource, unless another resource still needs it.

    Raises:
        KubeError: the API server refused.
    """
    secret = await _read(client, obj)
    finalizer = finalizer_of(obj["kind"])
    if secret is None or finalizer not in finalizers_of(secret):
        return
    key, gvk = Key.of(secret), GroupVersionKind.of(obj)
    for other in await client.list(gvk):
        if uid_of(other) != uid_of(obj) and secret_of(other) == key and finalizers_of(other):
            return
    await remove_finalizer(client, SECRET, secret, finalizer)


async def _read(client: Client, obj: JsonObject) -> JsonObject | None:
    key = secret_of(obj)
    if not (key.name and key.namespace):
        return None
    return await client.find(SECRET, key, metadata_only=True)
