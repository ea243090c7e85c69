"""The credentials of the next reconciliation are planned without writing anything."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import Garden
from pergola.garden.components import authorities
from pergola.garden.components.catalog import CATALOG
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.patches import apply_merge_patch
from pergola.operator.compare.placed import without_hash
from pergola.operator.plan.model import Change, Plan, Verb
from pergola.operator.plan.rehearse import rehearse
from pergola.operator.plan.sentences import CREDENTIALS
from pergola.operator.run.build import build
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.run import Run
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.clock import SystemClock
from pergola.sandbox import Sandbox
from tests.support.garden import BACKED_UP, GARDEN, landscape


class Requests:
    """The methods of all requests of a client."""

    def __init__(self) -> None:
        self.methods: set[str] = set()

    def __call__(self, method: str, *_: object) -> None:
        self.methods.add(method)


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
async def client(garden_sandbox: Sandbox, requests: Requests) -> AsyncIterator[Client]:
    """Yield a client of a cluster with an empty namespace `garden`, whose requests are counted."""
    config = load(garden_sandbox.kubeconfig)
    async with Client.connect(config) as admin, Client.connect(config, observe=requests) as client:
        await empty(admin)
        yield client
        await empty(admin)


async def empty(client: Client) -> None:
    for secret in await client.list(SECRET, "garden"):
        await client.delete(SECRET, Key.of(secret))


def template(garden: Garden) -> Landscape:
    return replace(landscape(), garden=garden, credentials=Credentials())


async def planned(client: Client, garden: JsonObject = GARDEN) -> Plan:
    return await rehearse(client, garden, template)


def credentials(plan: Plan) -> list[Change]:
    """Return the credentials that would be generated before anything is deployed."""
    return [change for task in plan.tasks if task.name == CREDENTIALS for change in task.changes]


async def generated(client: Client) -> dict[str, str]:
    """Generate them; return the names of their Secrets, by credential."""
    clock = SystemClock()
    run = Run(
        client=client,
        clock=clock,
        deployer=Deployer(client),
        virtual=VirtualCluster(client),
        built=await build(client, GARDEN, template, clock),
    )
    await run.generate_irreplaceable(CATALOG)
    return {name: found.current.object_name for name, found in run.built.secrets.generated.items()}


async def test_missing_credentials_are_predicted_but_not_generated(
    client: Client, requests: Requests
) -> None:
    found = credentials(await planned(client))

    assert requests.methods == {"GET"}
    assert {change.verb for change in found} == {Verb.CREATE}
    assert await client.list(SECRET, "garden") == []
    names = {without_hash(name) for name in (await generated(client)).values()}
    assert names <= {change.key.name for change in found}


async def test_existing_credentials_are_those_of_the_next_run(
    client: Client, requests: Requests
) -> None:
    await generated(client)
    requests.methods.clear()

    assert credentials(await planned(client)) == []
    assert requests.methods == {"GET"}


async def test_a_deleted_credential_is_predicted(client: Client) -> None:
    lost = (await generated(client))[authorities.RUNTIME]
    await client.delete(SECRET, Key("garden", lost))

    found = credentials(await planned(client))

    assert (Verb.CREATE, without_hash(lost)) in {(each.verb, each.key.name) for each in found}


async def test_missing_references_are_listed(client: Client, requests: Requests) -> None:
    plan = await planned(client, apply_merge_patch(GARDEN, BACKED_UP))
    assert [(each.kind, each.key.name) for each in plan.missing] == [("Secret", "backup")]
    assert requests.methods == {"GET"}
