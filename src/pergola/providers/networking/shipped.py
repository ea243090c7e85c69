"""What was last given to a Shoot, read from a ManagedResource on the seed."""

import base64
import binascii
from collections.abc import Iterator

import brotli

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.managed_resource import secret_names
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.yaml import YamlError, parse_documents


async def shipped_object(
    client: Client, resource: Key, gvk: GroupVersionKind, key: Key
) -> JsonObject | None:
    """An object of a ManagedResource; None if it has none, or its Secrets cannot be read.

    Raises:
        KubeError: the API server refused, or did not answer.
    """
    try:
        found = await client.get(MANAGED_RESOURCE, resource)
        for name in sorted(secret_names(found)):
            secret = await client.get(SECRET, Key(resource.namespace, name))
            for obj in _objects(secret):
                if GroupVersionKind.of(obj) == gvk and Key.of(obj) == key:
                    return obj
    except NotFound:
        pass
    return None


def _objects(secret: JsonObject) -> Iterator[JsonObject]:
    for key, value in map_at(secret, "data").items():
        try:
            data = base64.b64decode(str(value))
            text = brotli.decompress(data) if key.endswith(".br") else data
            values = [document.value for document in parse_documents(text)]
        except (binascii.Error, brotli.error, YamlError, UnicodeDecodeError):
            continue
        yield from (value for value in values if isinstance(value, dict))
