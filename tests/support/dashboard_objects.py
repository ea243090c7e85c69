"""Objects that the dashboard lists, with the status that controllers would report."""

from datetime import UTC, datetime, timedelta

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject, Key, generation_of
from pergola.api.resources_v1alpha1 import API_VERSION, MANAGED_RESOURCE
from pergola.kube.client import Client

APPLIED = "ResourcesApplied"
HEALTHY = "ResourcesHealthy"
PROGRESSING = "ResourcesProgressing"


def managed_resource(key: Key) -> JsonObject:
    """Return a ManagedResource of a class that no controller serves."""
    return {
        "apiVersion": API_VERSION,
        "kind": MANAGED_RESOURCE.kind,
        "metadata": {"namespace": key.namespace, "name": key.name},
        "spec": {"class": "dashboard", "secretRefs": []},
    }


def condition(
    kind: str, status: str, message: str = "", *, reason: str = "Reported", minutes: float = 5
) -> JsonObject:
    """Return a condition that changed some minutes ago."""
    time = timestamp(datetime.now(UTC) - timedelta(minutes=minutes))
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message or "as it should be",
        "lastTransitionTime": time,
        "lastUpdateTime": time,
    }


def good(minutes: float = 5) -> list[JsonObject]:
    """Return the conditions of a ManagedResource without problems."""
    return [
        condition(APPLIED, "True", minutes=minutes),
        condition(HEALTHY, "True", minutes=minutes),
        condition(PROGRESSING, "False", minutes=minutes),
    ]


def bad(message: str, minutes: float = 5) -> list[JsonObject]:
    """Return the conditions of a ManagedResource with an unhealthy object."""
    applied, _, progressing = good(minutes)
    return [applied, condition(HEALTHY, "False", message, minutes=minutes), progressing]


async def report(
    client: Client,
    key: Key,
    conditions: list[JsonObject],
    resources: list[JsonObject] | None = None,
) -> None:
    """Write the status of a ManagedResource as a resource manager would."""
    live = await client.get(MANAGED_RESOURCE, key)
    status: JsonObject = {"conditions": conditions, "observedGeneration": generation_of(live)}
    if resources is not None:
        status["resources"] = resources
    await client.patch(MANAGED_RESOURCE, key, {"status": status}, subresource="status")


async def create_managed_resource(
    client: Client,
    key: Key,
    conditions: list[JsonObject],
    resources: list[JsonObject] | None = None,
) -> None:
    """Create a ManagedResource with its status."""
    await client.create(managed_resource(key))
    await report(client, key, conditions, resources)
