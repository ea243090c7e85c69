"""The objects last shipped to a Shoot, read from a ManagedResource on the seed."""

import asyncio
from collections.abc import Iterator

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.content import (
    Budget,
    BudgetExceeded,
    DecompressionError,
    decode_data,
    read_documents,
)
from pergola.bundle.managed_resource import secret_names
from pergola.kube.client import Client
from pergola.kube.errors import NotFound


async def shipped_object(
    client: Client, resource: Key, gvk: GroupVersionKind, key: Key
) -> JsonObject | None:
    """Return an object of a ManagedResource; None if it has none, or its Secrets cannot be read.

    Raises:
        KubeError: the API server refused, or did not answer.
    """
    budget = Budget()
    try:
        found = await client.get(MANAGED_RESOURCE, resource)
        for name in sorted(secret_names(found)):
            secret = await client.get(SECRET, Key(resource.namespace, name))
            obj = await asyncio.to_thread(_find, map_at(secret, "data"), gvk, key, budget)
            if obj is not None:
                return obj
    except (NotFound, BudgetExceeded):
        pass
    return None


def _find(data: JsonObject, gvk: GroupVersionKind, key: Key, budget: Budget) -> JsonObject | None:
    objects = _objects(data, budget)
    return next((o for o in objects if GroupVersionKind.of(o) == gvk and Key.of(o) == key), None)


def _objects(data: JsonObject, budget: Budget) -> Iterator[JsonObject]:
    for name, value in decode_data(data).items():
        try:
            for document in read_documents(name, value, budget):
                if isinstance(document.value, dict):
                    yield document.value
        except DecompressionError:
            continue
