"""The objects that a ManagedResource ships, read from its Secrets."""

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.content import Budget, decode_data, read_documents
from pergola.bundle.managed_resource import secret_names
from pergola.kube.client import Client


async def shipped_objects(client: Client, key: Key) -> list[JsonObject]:
    """Return all objects of a ManagedResource."""
    resource, budget = await client.get(MANAGED_RESOURCE, key), Budget()
    found: list[JsonObject] = []
    for name in sorted(secret_names(resource)):
        secret = await client.get(SECRET, Key(key.namespace, name))
        for entry, value in decode_data(map_at(secret, "data")).items():
            documents = (document.value for document in read_documents(entry, value, budget))
            found += [each for each in documents if isinstance(each, dict)]
    return found
