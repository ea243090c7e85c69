"""A rotation of all credentials of a Garden, from start to completion.

The virtual cluster is a second control plane. Clients are checked against it, and encryption is
checked against the bytes in its etcd.
"""

import asyncio
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

import pytest

from pergola.api.kinds import SECRET, SEED
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, name_of
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.garden.app import app
from pergola.cli.garden.rotate_steps import Options, take_step
from pergola.cli.garden.runtime_cluster import Source
from pergola.kube.client import Client
from pergola.kube.errors import ApiError
from pergola.kube.patches import apply_merge_patch
from pergola.operator.plan import Fate, rehearse
from pergola.operator.rotation.access_tokens import RENEW
from pergola.operator.rotation.encryption.tasks import LABEL, SNAPSHOT, UNLABEL
from pergola.operator.rotation.requested import Action, Kind
from pergola.operator.rotation.seeds.standing import SKIPPED_SEEDS
from pergola.operator.rotation.seeds.tasks import RECONCILE_SEEDS, RENEW_KUBECONFIGS, TOKENS
from pergola.operator.start_checks import runtime_version
from pergola.operator.template import images, template
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.metrics import Metrics
from pergola.sandbox.simulated import Site
from pergola.testing.shared import require_images
from pergola.testing.waiting import until
from tests.support.documented import commands
from tests.support.garden_states import has_succeeded
from tests.support.garden_world import MANAGED, example, managed_secrets, operating
from tests.support.operator_lives import operator_lives
from tests.support.rotation_checks import (
    ROTATED,
    OldCredentials,
    both_are_accepted,
    is_completed,
    is_prepared,
    only_new_ones_are_accepted,
)
from tests.support.secret_history import secret_history
from tests.support.seeds import gardenlets, private_seed, register_provider
from tests.support.virtual_credentials import never_refused

T = TypeVar("T")

pytestmark = [pytest.mark.soak("gardens"), pytest.mark.timeout(2400)]

LOCAL = Key("", "local")
PATIENCE = 700.0
START, COMPLETE = 1, 2
"""The commands of the guide, the first of which is a dry run."""
FATAL = (RENEW, TOKENS)
"""The tasks after which an operator is killed: before and between the operations on Seeds."""
SEEDS = ("far", "gone", "near")
GONE = "gone"
RECORD = "rotation.operator.gardener.cloud"
RENEWALS = ("renew-garden-access-secrets", "renew-workload-identity-tokens", "renew-kubeconfig")


@pytest.fixture(autouse=True)
def gardener() -> None:
    require_images("gardener-apiserver")


async def test_all_credentials_of_a_garden_are_rotated_although_operators_are_killed(
    garden_world: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    client = garden_world.client
    async with AsyncExitStack() as stack:
        async with operating(garden_world, metrics=(metrics := Metrics())):
            await client.create(example())
            await until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)
            await all_ages_are_known(client, metrics)
            old = await OldCredentials.of(garden_world)

            secrets = await stack.enter_async_context(secret_history(client, "garden", MANAGED))
            virtual = await stack.enter_async_context(seeds(garden_world))
            await stack.enter_async_context(never_refused(garden_world))
            both = await stack.enter_async_context(AsyncExitStack())
            await both.enter_async_context(never_refused(garden_world, old.certificate, old.token))
            await is_predicted(garden_world)
            following = asyncio.create_task(taken(garden_world, START))
            # It runs until a user decides about the Seed without a gardenlet.
            await until_rendered(
                client, metrics, 'phase="Preparing",rotation="certificateAuthorities"'
            )

        async def rotated() -> None:
            await decide_to_skip(client)
            assert await following
            await until(client, GARDEN, LOCAL, is_prepared, patience=PATIENCE)
            await all_seeds_but_one_are_renewed(virtual)
            await both_are_accepted(garden_world, old)
            await both.aclose()
            assert await taken(garden_world, COMPLETE)
            await until(client, GARDEN, LOCAL, is_completed, patience=PATIENCE)

        lives = await stack.enter_async_context(operator_lives(garden_world))
        await lives.killed_after(FATAL, rotated())
        assert len(lives.boundaries) == len(FATAL)
        assert {secrets.generated[name] for name in ROTATED} == {2}
    assert "tokens that the old key signed are no longer accepted" in capsys.readouterr().out
    await only_new_ones_are_accepted(garden_world, old)


async def all_ages_are_known(client: Client, metrics: Metrics) -> None:
    for name in ROTATED:
        await until_rendered(client, metrics, f'credential_age_seconds{{credential="{name}"}}')


async def taken(site: Site, number: int) -> bool:
    """Take a step of the guide, and follow its progress."""
    source = Source("", None, ClusterOptions(kubeconfig=site.sandbox.kubeconfig))
    command = commands("how-to/operating-a-garden.md", "Rotating credentials")[number]
    return await take_step(source, *step(command), Options())


def step(command: str) -> tuple[Kind, Action]:
    """Return the request of a command in the guide."""
    _, _, *arguments = shlex.split(command, comments=True)
    given = app.parse_args(arguments, print_error=False, exit_on_error=False)[1].arguments
    return given.get("kind", "all"), "start" if given.get("start") else "complete"


async def is_predicted(site: Site) -> None:
    """Check that a plan of the start names the tasks that run, and writes nothing."""
    before = {*await managed_secrets(site.client)}
    version = await runtime_version(site.client, any_version=True)
    vector = images(site.operator_environment)
    of = template(OperatorConfiguration(), vector, version, garden_webhooks)
    request: JsonObject = {
        "metadata": {"annotations": {"gardener.cloud/operation": "rotate-credentials-start"}}
    }
    garden = apply_merge_patch(await site.client.get(GARDEN, LOCAL), request)
    plan = await rehearse(site.client, garden, of, reach=site.reach)
    fates = {task.name: task.fate for task in plan.tasks}
    assert {fates[name] for name in (RENEW, RENEW_KUBECONFIGS, RECONCILE_SEEDS, LABEL)} == {
        Fate.RUN
    }
    assert {fates[name] for name in (UNLABEL, SNAPSHOT)} == {Fate.SKIP}
    # The operator may remove the first kubeconfig of the virtual resource manager in between.
    assert {*await managed_secrets(site.client)} <= before
    for secret in await site.client.list(SECRET, "garden", metadata_only=True):
        assert not any("rotation" in name for name in annotations_of(secret))


async def until_rendered(client: Client, metrics: Metrics, text: str) -> None:
    """Wait until the metrics contain a text: they read the operator's caches, which may be late."""
    async with asyncio.timeout(PATIENCE):
        while text not in rendered(metrics):
            await client.get_raw("/version")


def rendered(metrics: Metrics) -> str:
    return metrics.render().decode()


# Seeds


@asynccontextmanager
async def seeds(site: Site) -> AsyncGenerator[Client]:
    """Create Seeds, and run all their gardenlets but one; yield a client of the virtual cluster."""
    async with VirtualCluster(site.client, reach=site.reach) as access:
        virtual = await access.client()
        await register_provider(virtual)
        for name in SEEDS:
            await virtual.create(private_seed(name))
        async with gardenlets(virtual, absent={GONE}):
            yield virtual


async def decide_to_skip(client: Client) -> None:
    """Skip the Seed without a gardenlet, once the Garden reports that it waits for it."""
    waiting = f"{len(SEEDS) - 1} of {len(SEEDS)} Seeds done, waiting for {GONE}"
    await until(client, GARDEN, LOCAL, lambda it: waiting in progress(it), patience=PATIENCE)
    skip = {"metadata": {"annotations": {SKIPPED_SEEDS: GONE}}}
    await answered(lambda: client.patch(GARDEN, LOCAL, skip))


async def answered(send: Callable[[], Awaitable[T]]) -> T:
    """Send a request again while the server that it needs is being replaced, and return the answer.

    Operators that are killed serve the webhooks of the Garden, and a rollout of Gardener's API
    server ends while the old process still has connections of the virtual API server.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await send()
            except ApiError as error:
                if error.code < 500:
                    raise
                await asyncio.sleep(0.5)


async def all_seeds_but_one_are_renewed(virtual: Client) -> None:
    """Check that each Seed has performed all operations, but the one without a gardenlet none."""
    listed = await answered(lambda: virtual.list(SEED))
    found = {name_of(seed): annotations_of(seed) for seed in listed}
    requests = [f"{RECORD}/{each}" for each in RENEWALS]
    assert found[GONE]["gardener.cloud/operation"] == RENEWALS[0]
    assert not found[GONE].keys() & {*requests[1:]}
    for name in {*SEEDS} - {GONE}:
        assert {*requests, f"{RECORD}/reconcile"} <= found[name].keys()


def progress(garden: JsonObject) -> str:
    return str(map_at(garden, "status", "lastOperation").get("description"))
