"""Delete the webhook configurations that an Extension itself registered in the runtime cluster.

They belong to no ManagedResource, so nothing else deletes them. Once the Extension is gone, their
webhooks have no server, and the API server refuses all requests that they match.
"""

from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from pergola.admission.configurations import MUTATING, VALIDATING
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.objects import JsonObject, Key, map_at, maps_at, owner_references_of, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.logging import get_logger

log = get_logger("extension")


async def delete_configurations(client: Client, namespace: str) -> bool:
    """Delete the configurations of a namespace's servers; return whether any existed.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    found = [
        (gvk, obj)
        for gvk in (MUTATING, VALIDATING)
        for obj in await client.list(gvk)
        if belongs_to(obj, namespace)
    ]
    for gvk, obj in found:
        with suppress(NotFound):
            await client.delete(gvk, Key.of(obj), uid=uid_of(obj))
        log.info("webhook configuration deleted", kind=gvk.kind, object=str(Key.of(obj)))
    return bool(found)


def belongs_to(configuration: JsonObject, namespace: str) -> bool:
    """Return whether a namespace owns a configuration, or has the servers of all its webhooks."""
    for owner in owner_references_of(configuration):
        if (owner.get("kind"), owner.get("name")) == (NAMESPACE_KIND.kind, namespace):
            return True
    return set(_namespaces(configuration)) == {namespace}


def _namespaces(configuration: JsonObject) -> Iterator[str]:
    """Yield the namespace of each webhook's server; empty if it is outside the cluster."""
    for webhook in maps_at(configuration, "webhooks"):
        config = map_at(webhook, "clientConfig")
        if service := map_at(config, "service"):
            yield str(service.get("namespace") or "")
            continue
        host = urlsplit(str(config.get("url") or "")).hostname or ""
        _, _, rest = host.partition(".")
        namespace, _, domain = rest.partition(".")
        yield namespace if domain == "" or domain.split(".")[0] == "svc" else ""
