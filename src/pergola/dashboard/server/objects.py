"""The details of one object: read when it is opened, with the viewer's permissions."""

import asyncio
from typing import Final

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    maps_at,
    namespace_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.server.redaction import redacted
from pergola.dashboard.state.cards import card_id
from pergola.dashboard.state.verdicts import Condition, State, conditions, deletion, verdict
from pergola.health import check
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, KubeError, NotFound
from pergola.runtime.task_group import gathered

LISTED: Final = 200
"""The number of managed objects whose state is read; only the names of the others are listed."""
_AT_ONCE: Final = 16


async def details(client: Client, gvk: GroupVersionKind, key: Key) -> JsonObject:
    """Return an object with its conditions and the objects below it.

    Raises:
        KubeError: It does not exist, or may not be read.
    """
    obj = await client.get(gvk, key)
    found = verdict(gvk, obj)
    return {
        "id": card_id(gvk, key),
        "object": redacted(obj),
        "state": found.state.value,
        "problem": found.problem,
        "conditions": [_condition(each) for each in conditions(obj)],
        "objects": await _managed(client, obj) if gvk == MANAGED_RESOURCE else [],
    }


async def _managed(client: Client, resource: JsonObject) -> list[JsonObject]:
    """Return the objects of a ManagedResource, with the states of the first ones."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def read(reference: JsonObject) -> JsonObject:
        async with limit:
            return await _state_of(client, reference)

    references = maps_at(resource, "status", "resources")
    states = await gathered(read(each) for each in references[:LISTED])
    return [*states, *(_row(each, None, "") for each in references[LISTED:])]


async def _state_of(client: Client, reference: JsonObject) -> JsonObject:
    gvk, key = _identity(reference)
    try:
        obj = await client.get(gvk, key)
    except NotFound:
        return _row(reference, None, "it is not in this cluster")
    except Forbidden:
        return _row(reference, None, "you may not read it")
    except KubeError as error:
        return _row(reference, None, str(error))
    reference = {**reference, "namespace": namespace_of(obj)}
    if deletion_timestamp_of(obj) is not None:
        return _row(reference, State.DELETING, deletion(obj))
    problem = check(obj)
    return _row(reference, State.TROUBLE if problem else State.HEALTHY, problem or "")


def _row(reference: JsonObject, state: State | None, problem: str) -> JsonObject:
    gvk, key = _identity(reference)
    return {
        "id": card_id(gvk, key),
        "kind": gvk.kind,
        "namespace": key.namespace,
        "name": key.name,
        "state": state.value if state else "",
        "problem": problem,
    }


def _identity(reference: JsonObject) -> tuple[GroupVersionKind, Key]:
    gvk = GroupVersionKind.of(reference)
    return gvk, Key(str(reference.get("namespace") or ""), str(reference.get("name") or ""))


def _condition(each: Condition) -> JsonObject:
    return {
        "type": each.kind,
        "status": each.status,
        "state": each.state.value,
        "since": each.since,
        "reason": each.reason,
        "message": each.message,
    }
