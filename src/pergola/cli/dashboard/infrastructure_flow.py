"""The flow of an Infrastructure in AWS, as drawn by the page.

The steps are derived from the Infrastructure and its Cluster; its last operation tells which of
them are running. AWS is not accessed.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Final

from pergola.cli.dashboard.tasks import flow_data

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject, Key
    from pergola.extension_api.cluster import Cluster
    from pergola.kube.client import Client
    from pergola.kube.states import States
    from pergola.operator.reconcile.picture import Operation
    from pergola.operator.reconcile.picture.steps import Step

_AWS: Final = "aws"
_POLL_SECONDS: Final = 5.0
_FAILED: Final = re.compile(r'task "([^"]+)" failed: ([^\n]*)')


@asynccontextmanager
async def infrastructure_flow(
    client: "Client", gvk: "GroupVersionKind", key: "Key"
) -> "AsyncGenerator[AsyncIterator[JsonObject]]":
    """Yield the steps of an Infrastructure now and after each change, until it is gone."""
    from pergola.kube.states import watched

    async with aclosing(watched(client, gvk, key, _POLL_SECONDS)) as states:
        yield _pictures(states, await _cluster(client, key.namespace))


async def _cluster(client: "Client", name: str) -> "Cluster | None":
    from pergola.api.objects import Key
    from pergola.extension_api.cluster import CLUSTER, Cluster
    from pergola.kube.errors import UnknownKind

    try:
        found = await client.find(CLUSTER, Key("", name))
    except UnknownKind:
        return None
    return Cluster.from_object(found) if found else None


async def _pictures(states: "States", cluster: "Cluster | None") -> "AsyncIterator[JsonObject]":
    async for infrastructure in states:
        if infrastructure is None:
            return
        yield _picture(infrastructure, cluster)


def _picture(infrastructure: "JsonObject", cluster: "Cluster | None") -> "JsonObject":
    """Return the flow of an Infrastructure.

    Raises:
        Unanswered: It is not one of AWS, or its configuration is not valid.
    """
    from pergola.api.objects import map_at
    from pergola.operator.reconcile.picture.states import states
    from pergola.operator.reconcile.picture.taking import operation_of

    operation = operation_of(infrastructure)
    error = str(map_at(infrastructure, "status", "lastError").get("description") or "")
    failures = dict(_FAILED.findall(error))
    steps = _steps(infrastructure, cluster, operation)
    tasks = states(steps, operation, failures, lambda _: None)
    return flow_data(tasks, operation, error)


def _steps(
    infrastructure: "JsonObject", cluster: "Cluster | None", operation: "Operation"
) -> "list[Step]":
    from pergola.api.objects import map_at
    from pergola.api.schema.read import Malformed
    from pergola.dashboard.server.answers import Unanswered
    from pergola.extension_api.errors import ExtensionError
    from pergola.operator.reconcile.picture.steps import Step
    from pergola.providers.aws.flows.delete import delete_steps
    from pergola.providers.aws.flows.reconcile import reconcile_steps
    from pergola.providers.aws.flows.run import DELETION, RECONCILIATION
    from pergola.providers.aws.request import desired_of
    from pergola.providers.aws.state import read_state

    provider = map_at(infrastructure, "spec").get("type")
    if provider != _AWS:
        raise Unanswered(f"the flow of Infrastructures of type {provider} is not known")
    try:
        desired = desired_of(infrastructure, cluster)
    except (Malformed, ExtensionError) as error:
        raise Unanswered(f"the steps cannot be derived: {error}") from None
    is_deletion = operation.type == "Delete"
    if is_deletion:
        found = delete_steps(desired, read_state(map_at(infrastructure, "status", "state")))
    else:
        found = reconcile_steps(desired)
    flow = DELETION if is_deletion else RECONCILIATION
    return _ordered(
        [
            Step(name=each.name, flow=flow, after=each.after, skipped=each.skip or "")
            for each in found
        ]
    )


def _ordered(steps: "list[Step]") -> "list[Step]":
    """Return the steps in order of their dependencies."""
    from graphlib import TopologicalSorter

    known = {step.name: step for step in steps}
    sorter = TopologicalSorter({step.name: step.after for step in steps})
    return [known[name] for name in sorter.static_order()]
