"""ManagedResources that are applied, without a resource manager that applies them."""

from typing import Final

from pergola.api.objects import JsonObject, Key, generation_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client

_APPLIED: Final[JsonObject] = {
    "type": "ResourcesApplied",
    "status": "True",
    "reason": "ApplySucceeded",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "lastUpdateTime": "2026-01-01T00:00:00Z",
}


async def report_applied(client: Client, namespace: str) -> None:
    """Report all ManagedResources of a namespace as applied."""
    for each in await client.list(MANAGED_RESOURCE, namespace):
        status = {"observedGeneration": generation_of(each), "conditions": [_APPLIED]}
        await client.patch(MANAGED_RESOURCE, Key.of(each), {"status": status}, subresource="status")
