"""Operations on all Seeds during a rotation, on a real API server with simulated gardenlets."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager

import pytest

from pergola.api.kinds import SECRET, SEED
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.flow import FlowFailed, Graph
from pergola.flow import run as run_flow
from pergola.garden.components.virtual_access import access_secret
from pergola.kube import states
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.patches import apply_merge_patch
from pergola.operator.plan import Fate, Planned
from pergola.operator.plan.client import Rehearsal
from pergola.operator.plan.doubles import RehearsedVirtualCluster
from pergola.operator.plan.stage import Stage
from pergola.operator.reconcile.flows import reconciliation
from pergola.operator.rotation.access_tokens import renew_tokens
from pergola.operator.rotation.seeds import requests, tasks
from pergola.operator.rotation.seeds.standing import SKIPPED_SEEDS, Request, SeedsBusy
from pergola.operator.rotation.seeds.targets import SEEDS
from pergola.operator.run.run import Run
from pergola.sandbox import API_ONLY, Sandbox
from pergola.testing.crds import definition, install_operator_crds, serve
from pergola.testing.shared import private
from pergola.testing.world import RecordingClient
from tests.support.documented.symptoms import symptom
from tests.support.dying import killed_after
from tests.support.garden import landscape
from tests.support.garden_run import Notes, garden_run
from tests.support.gardens import MINIMAL

OPERATION = "gardener.cloud/operation"
REQUEST = Request("renew-kubeconfig", "2026-01-02T03:04:05Z")
LOCAL = Key("", "minimal")
GONE = "s49"
SLOW = {f"s{number}" for number in (3, 11, 19, 27, 35)}
COUNT = 50
TOKEN_TIME = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
TIME: JsonObject = {"metadata": {"annotations": {TOKEN_TIME: "2999-01-01T00:00:00Z"}}}
PREPARING: JsonObject = {"phase": "Preparing", "lastInitiationTime": REQUEST.rotation}
RENEWALS = ("renew-garden-access-secrets", "renew-workload-identity-tokens", "renew-kubeconfig")
ON_SEEDS = (
    tasks.RENEW_ACCESS,
    tasks.ACCESS,
    tasks.RENEW_TOKENS,
    tasks.TOKENS,
    tasks.RENEW_KUBECONFIGS,
    tasks.KUBECONFIGS,
)
PERFORMED: JsonObject = {"metadata": {"annotations": {OPERATION: None}}}


class Counting(RecordingClient):
    """A client that also counts concurrent patches."""

    at_once = 0
    most_at_once = 0

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | object,
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await super().patch(gvk, key, body, subresource=subresource, manager=manager)  # type: ignore[arg-type]
        finally:
            self.at_once -= 1


@pytest.fixture(scope="module")
def own_sandbox() -> Iterator[Sandbox]:
    """Yield etcd and an API server for the tests of this module."""
    with private(API_ONLY, prepare=_prepare) as own:
        yield own


async def _prepare(client: Client) -> None:
    await install_operator_crds(client)
    await serve(client, definition(SEED, scope="Cluster"))


@pytest.fixture
async def client(own_sandbox: Sandbox) -> AsyncIterator[Counting]:
    """Yield a client of a cluster with Seeds and a Garden, and delete both after the test."""
    async with Counting.connect(load(own_sandbox.kubeconfig)) as client:
        await client.create(MINIMAL)
        client.taken()
        yield client
        await client.delete(GARDEN, LOCAL)
        for seed in await client.list(SEED):
            await client.delete(SEED, Key.of(seed))


async def create_seeds(client: Client, count: int, **annotations: dict[str, str]) -> None:
    """Create Seeds s0, s1 and so on, some of them with annotations."""
    for number in range(count):
        name = f"s{number}"
        metadata: JsonObject = {"name": name, "annotations": annotations.get(name, {})}
        await client.create(
            {"apiVersion": SEED.api_version, "kind": SEED.kind, "metadata": metadata}
        )


class Gardenlets:
    """Gardenlets of all Seeds but one, which remove operations from Seeds, some on request."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.slow_may_work = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            begun: set[str] = set()
            async with aclosing(states.all_watched(self._client, SEED)) as collections:
                async for collection in collections:
                    for key, seed in collection.items():
                        if OPERATION in annotations_of(seed) and key.name not in {GONE, *begun}:
                            begun.add(key.name)
                            group.create_task(self._perform(key))

    async def _perform(self, key: Key) -> None:
        if key.name in SLOW:
            await self.slow_may_work.wait()
        await self._client.patch(SEED, key, PERFORMED)


async def with_operation(client: Client) -> dict[str, str]:
    """Return the operations requested on Seeds, by name."""
    seeds = await client.list(SEED)
    found = {name_of(seed): annotations_of(seed).get(OPERATION, "") for seed in seeds}
    return {name: operation for name, operation in found.items() if operation}


async def a_run(client: Client, notes: Notes | None = None) -> Run:
    return await garden_run(client, client, landscape(), notes)


async def test_the_wait_for_fifty_seeds_names_slow_ones_and_can_skip_a_missing_one(
    client: Counting, own_sandbox: Sandbox
) -> None:
    await create_seeds(client, COUNT)
    client.taken()
    notes = Notes()
    run = await a_run(client, notes)
    async with Client.connect(load(own_sandbox.kubeconfig)) as other:
        gardenlets = Gardenlets(other)
        async with gardenlets.running():
            await requests.annotate(run, LOCAL, SEEDS, REQUEST)
            assert len(client.taken()) == COUNT
            assert client.most_at_once == 5

            waiting = asyncio.create_task(
                requests.wait(run, LOCAL, SEEDS, REQUEST, "gardenlet kubeconfig")
            )
            await notes.until("44 of 50 Seeds done, waiting for s11, s19, s27, s3, s35 and 1")

            # An operator that starts now does not repeat any request.
            again = await a_run(client)
            await requests.annotate(again, LOCAL, SEEDS, REQUEST)
            assert client.taken() == []

            gardenlets.slow_may_work.set()
            await notes.until("49 of 50 Seeds done, waiting for s49")
            assert not waiting.done()

            # While the operator waits, the user decides to skip it.
            patch = {"metadata": {"annotations": {SKIPPED_SEEDS: GONE}}}
            await other.patch(GARDEN, LOCAL, patch)
            await waiting
            assert await with_operation(client) == {GONE: "renew-kubeconfig"}


async def test_a_seed_with_another_operation_stops_the_requests_to_all_seeds(
    client: Counting,
) -> None:
    await create_seeds(client, 3, s1={OPERATION: "reconcile"})
    client.taken()
    run = await a_run(client)
    with pytest.raises(SeedsBusy, match=symptom("A rotation does not start in the Seeds")):
        await requests.annotate(run, LOCAL, SEEDS, REQUEST)
    assert client.taken() == []

    await client.patch(SEED, Key("", "s1"), PERFORMED)
    await requests.annotate(run, LOCAL, SEEDS, REQUEST)
    assert await with_operation(client) == dict.fromkeys(("s0", "s1", "s2"), REQUEST.operation)


async def test_a_seed_that_already_has_the_operation_is_not_written(client: Counting) -> None:
    await create_seeds(client, 2, s0={OPERATION: REQUEST.operation})
    client.taken()
    await requests.annotate(await a_run(client), LOCAL, SEEDS, REQUEST)
    assert client.taken() == ["patch Seed s1"]


async def test_an_operation_that_appears_between_reading_and_writing_is_not_overwritten(
    client: Counting, own_sandbox: Sandbox
) -> None:
    await create_seeds(client, 1)

    class Late(RecordingClient):
        """A client whose Seeds get another operation after they were listed."""

        async def list(
            self,
            gvk: GroupVersionKind,
            namespace: str | None = None,
            *,
            labels: str | None = None,
            fields: str | None = None,
            metadata_only: bool = False,
        ) -> list[JsonObject]:
            found = await super().list(gvk, metadata_only=metadata_only)
            for seed in found:
                patch = {"metadata": {"annotations": {OPERATION: "reconcile"}}}
                await client.patch(SEED, Key.of(seed), patch)
            return found

    async with Late.connect(load(own_sandbox.kubeconfig)) as late:
        run = await garden_run(client, late, landscape())
        with pytest.raises(ExceptionGroup) as raised:
            await requests.annotate(run, LOCAL, SEEDS, REQUEST)
    assert raised.group_contains(SeedsBusy)
    assert await with_operation(client) == {"s0": "reconcile"}


async def test_the_error_after_the_deadline_names_the_unfinished_seed(client: Counting) -> None:
    await create_seeds(client, 2)
    run = await a_run(client)
    await requests.annotate(run, LOCAL, SEEDS, REQUEST)
    await client.patch(SEED, Key("", "s0"), PERFORMED)
    graph = Graph("test")

    async def wait() -> None:
        await requests.wait(run, LOCAL, SEEDS, REQUEST, "gardenlet kubeconfig")

    graph.add("Check", wait, timeout=5)
    with pytest.raises(FlowFailed, match=r'"gardenlet kubeconfig" secrets for seed "s1" is not'):
        await run_flow(graph)


async def test_each_seed_gets_one_request_even_if_the_operator_is_killed_between_two(
    client: Counting,
) -> None:
    count = 4
    await create_seeds(client, count)
    for writes in range(count + 1):
        request = Request("renew-kubeconfig", f"2026-01-0{writes + 1}T00:00:00Z")

        async def work(mortal: Client, request: Request = request) -> None:
            run = await garden_run(mortal, mortal, landscape())
            await requests.annotate(run, LOCAL, SEEDS, request)

        is_killed = await killed_after(writes, client, work)
        assert is_killed is (writes < count)
        first = await with_operation(client)
        assert len(first) <= writes
        for name in first:
            await client.patch(SEED, Key("", name), PERFORMED)
        await work(client)
        second = await with_operation(client)
        assert not first.keys() & second.keys()
        assert len(first | second) == count
        for name in second:
            await client.patch(SEED, Key("", name), PERFORMED)


async def test_a_plan_contains_each_operation_even_if_a_seed_still_has_another_one(
    client: Counting,
) -> None:
    await create_seeds(client, 2, s0={"other": ""}, s1={OPERATION: RENEWALS[0]})
    client.taken()
    planned = await plan_of_seeds(client)
    assert {task.fate for task in planned} == {Fate.RUN}
    requested, awaited = planned[::2], planned[1::2]
    assert [operations(task) for task in requested] == [
        {"s0": RENEWALS[0]},
        *({"s0": operation, "s1": operation} for operation in RENEWALS[1:]),
    ]
    assert [task.waits for task in awaited] == [
        f"Operation {operation}: 0 of 2 Seeds done, waiting for s0, s1" for operation in RENEWALS
    ]
    assert client.taken() == []
    assert await with_operation(client) == {"s1": RENEWALS[0]}


class OnlyRead(RehearsedVirtualCluster):
    """A rehearsed virtual cluster with a given client."""

    def __init__(self, given: Rehearsal) -> None:
        super().__init__(given)
        self._rehearsal = given

    async def client(self) -> Client:
        assert self._rehearsal is not None
        return self._rehearsal


async def plan_of_seeds(client: Client) -> list[Planned]:
    """Return the plan of the tasks that renew everything on Seeds, in order."""
    rotations = dict.fromkeys(("serviceAccountKey", "workloadIdentityKey"), PREPARING)
    rotations["certificateAuthorities"] = PREPARING
    site = landscape({"status": {"credentials": {"rotation": rotations}}})
    rehearsal = Rehearsal(client)
    stage = Stage(rehearsal, OnlyRead(rehearsal))
    run = await garden_run(rehearsal, rehearsal, site)
    run.note = stage.note
    run.virtual = stage.virtual
    graph = reconciliation(run, LOCAL)
    return [await stage.planned(run, graph, graph[name]) for name in ON_SEEDS]


def operations(task: Planned) -> dict[str, str]:
    """Return the operation that a task requests, by Seed."""
    desired = f"metadata.annotations.{OPERATION}"
    return {
        change.key.name: str(field.new)
        for change in task.changes
        for field in change.fields
        if field.path == desired
    }


async def test_a_rotation_renews_a_token_once_even_if_the_operator_is_killed(
    client: Counting,
) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}
    await client.apply(namespace, manager="test", force=True)
    for name in ("a", "b", "c"):
        secret = access_secret(name)
        await client.create(apply_merge_patch(secret, TIME))
    key = Key("garden", "shoot-access-a")
    for writes in range(4):
        rotation = f"2026-01-0{writes + 1}T00:00:00Z"

        async def work(mortal: Client, rotation: str = rotation) -> None:
            await renew_tokens(mortal, rotation)

        await killed_after(writes, client, work)
        first = await without_token(client)
        assert len(first) == writes
        for name in first:
            await client.patch(SECRET, Key("garden", name), TIME)
        await work(client)
        second = await without_token(client)
        assert not first & second
        assert len(first | second) == 3
        for name in second:
            await client.patch(SECRET, Key("garden", name), TIME)
    assert annotations_of(await client.get(SECRET, key))[TOKEN_TIME] == "2999-01-01T00:00:00Z"
    for secret in await client.list(SECRET, "garden"):
        await client.delete(SECRET, Key.of(secret))


async def without_token(client: Client) -> set[str]:
    """Return the names of the Secrets whose token has to be renewed."""
    secrets = await client.list(SECRET, "garden")
    return {name_of(each) for each in secrets if TOKEN_TIME not in annotations_of(each)}
