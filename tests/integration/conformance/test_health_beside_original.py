"""The original and Pergola judge the health and progress of random objects alike, as processes.

`conformance/subjects/health.py` compares the verdicts about single objects. Here, both follow
statuses, manifests and pods, and write conditions: their status and reason are equal, and their
messages are each side's own (decision 1). Decision 593 lists what Pergola does otherwise.
"""

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import pytest

from pergola.api.kinds import POD
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING, Reason
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.health import check, needs_pod_count, pods_problem, progressing
from pergola.kube.client import Client
from tests.support.beside_original import beside_original
from tests.support.random_statuses import NAMESPACE, Statuses, prepare

pytestmark = [pytest.mark.soak("originals"), pytest.mark.timeout(600)]

_ROUNDS: Final = 4
_CONTROLLERS: Final[JsonObject] = {
    # The original misses pods that change, and judges them at its next sync.
    "health": {"syncPeriod": "15s", "concurrentSyncs": 5},
    "managedResource": {"syncPeriod": "10m", "concurrentSyncs": 10},
}

Conditions = dict[str, tuple[str, str]]
"""The status and reason of each condition."""


async def test_random_objects_are_judged_as_by_the_original(chance: random.Random) -> None:
    """Takes about a minute: the original checks some objects only at its sync, after 15 seconds."""
    async with beside_original(_CONTROLLERS, prepare) as sides:
        statuses = Statuses(sides, chance)
        await statuses.fill()
        await sides.until_equal(conditions, rules, statuses.describe)
        for _ in range(_ROUNDS):
            for change in (statuses.change_pods, statuses.change_manifests):
                await statuses.change_statuses()
                await change()
                await sides.until_equal(conditions, rules, statuses.describe)


async def conditions(client: Client) -> dict[str, Conditions]:
    """Return the conditions of all ManagedResources, by name."""
    return {
        Key.of(resource).name: {
            each["type"]: (each["status"], each["reason"])
            for each in maps_at(resource, "status", "conditions")
        }
        for resource in await client.list(MANAGED_RESOURCE, NAMESPACE)
    }


async def rules(client: Client) -> dict[str, Conditions]:
    """Return the conditions that the rules of Pergola give for the live objects."""
    pods = await client.list(POD, NAMESPACE)
    return {
        Key.of(resource).name: await _verdict(client, resource, pods)
        for resource in await client.list(MANAGED_RESOURCE, NAMESPACE)
    }


async def _verdict(client: Client, resource: JsonObject, pods: list[JsonObject]) -> Conditions:
    references = maps_at(resource, "status", "resources")
    found = [await _live(client, reference) for reference in references]
    objects = [obj for obj in found if obj is not None]
    if len(objects) < len(found):
        return {}  # not yet applied
    sick = [obj["kind"] for obj in objects if check(obj) is not None]
    rolling = [obj["kind"] for obj in objects if _rolls(obj, pods)]
    return {
        APPLIED: ("True", Reason.APPLY_SUCCEEDED),
        HEALTHY: ("False", Reason.unhealthy(sick[0])) if sick else ("True", Reason.HEALTHY),
        PROGRESSING: ("True", Reason.progressing(rolling[0]))
        if rolling
        else ("False", Reason.ROLLED_OUT),
    }


async def _live(client: Client, reference: JsonObject) -> JsonObject | None:
    gvk = GroupVersionKind.parse(reference["apiVersion"], reference["kind"])
    return await client.find(gvk, Key(NAMESPACE, reference["name"]))


def _rolls(obj: JsonObject, pods: Iterable[JsonObject]) -> bool:
    if progressing(obj) is not None:
        return True
    is_counted = needs_pod_count(GroupVersionKind.of(obj))
    return is_counted and pods_problem(obj, pods, now=datetime.now(UTC)) is not None
