"""Pictures of a Garden on a real API server: reports of the operator, and existing objects."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from pergola.api.kinds import LEASE
from pergola.api.objects import JsonObject, Key, generation_of, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.cli.garden.runtime_cluster import GardenNotFound, chosen, runtime_template
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.operator.reconcile.flows import SETUP
from pergola.operator.reconcile.picture import Picture, State, following
from pergola.operator.reconcile.picture.operators import ELECTION
from tests.support.garden import GARDEN as WITH_UID

PATIENCE = 240.0
LOCAL = Key("", "followed")


def garden() -> JsonObject:
    return {**WITH_UID, "metadata": {"name": LOCAL.name}}


async def report(client: Client, state: str, description: str, **status: Any) -> None:
    live = await client.get(GARDEN, LOCAL)
    last = {
        "type": "Reconcile",
        "state": state,
        "progress": 40,
        "description": description,
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    patch = {"lastOperation": last, "observedGeneration": generation_of(live), **status}
    await client.patch(GARDEN, LOCAL, {"status": patch}, subresource="status")


@asynccontextmanager
async def followed(client: Client) -> AsyncGenerator[AsyncIterator[Picture]]:
    template = await runtime_template(client, None)
    async with asyncio.timeout(PATIENCE), following(client, LOCAL.name, template) as pictures:
        yield pictures


async def until(pictures: AsyncIterator[Picture], holds: Callable[[Picture], bool]) -> Picture:
    async for picture in pictures:
        if holds(picture):
            return picture
    raise AssertionError("there are no more pictures")


def states(picture: Picture) -> dict[str, State]:
    return {task.name: task.state for task in picture.tasks}


@pytest.fixture(autouse=True)
async def without_operator(runtime: Client) -> None:
    """Delete the Lease that an operator of another test may have left in the cluster."""
    with suppress(NotFound):
        await runtime.delete(LEASE, ELECTION)


async def test_a_garden_is_followed_from_its_first_report_to_its_deletion(runtime: Client) -> None:
    await runtime.create(garden())
    async with followed(runtime) as pictures:
        first = await anext(pictures)
        assert set(states(first).values()) == {State.PENDING, State.SKIPPED}
        assert "check that it runs" in first.note

        await report(runtime, "Processing", f"Starting {SETUP}")
        running = await until(pictures, lambda it: it.operation.state == "Processing")
        [task] = [
            t for t in running.tasks if t.name == "Deploying custom resource definitions for VPA"
        ]
        assert task.state is State.RUNNING
        assert task.waits[0].problem == "it does not exist"

        error = {"taskID": task.name, "description": "it is broken", "codes": ["ERR_X"]}
        await report(runtime, "Error", "It failed.", lastErrors=[error])
        failed = await until(pictures, lambda it: it.is_over)
        assert states(failed)[task.name] is State.FAILED
        assert failed.errors[0]["codes"] == ["ERR_X"]

        await runtime.delete(GARDEN, LOCAL)
        gone = await until(pictures, lambda it: not it.exists)
        assert gone.is_over
        with pytest.raises(StopAsyncIteration):
            await anext(pictures)


async def test_a_stopped_operator_is_reported(runtime: Client) -> None:
    await runtime.create(garden())
    await report(runtime, "Processing", f"Starting {SETUP}")
    spec = {"holderIdentity": "operator-0", "renewTime": "2026-01-01T00:00:00.000000Z"}
    metadata = {"name": ELECTION.name, "namespace": ELECTION.namespace}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    await runtime.create({**lease, "spec": spec})
    try:
        async with followed(runtime) as pictures:
            note = (await anext(pictures)).note
        assert note.startswith(f"operator operator-0 has not renewed Lease {ELECTION} since 2026")
    finally:
        await runtime.delete(LEASE, ELECTION)


async def test_the_only_garden_is_the_default_and_a_wrong_name_is_an_error(runtime: Client) -> None:
    with pytest.raises(GardenNotFound, match="it has none"):
        await chosen(runtime, "")
    await runtime.create(garden())
    assert await chosen(runtime, "") == name_of(garden())
    with pytest.raises(GardenNotFound, match=f"it has {LOCAL.name}"):
        await chosen(runtime, "other")
