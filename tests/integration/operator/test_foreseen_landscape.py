"""The landscape of the next reconciliation can be predicted without writing anything."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Final

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import Garden
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.garden.components.virtual_access import GENERIC_KUBECONFIG
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.patches import apply_merge_patch
from pergola.operator.reconcile.foreseen import Foreseen, foresee
from pergola.operator.run.build import build
from pergola.runtime.clock import SystemClock
from pergola.sandbox import Sandbox
from tests.support.garden import BACKED_UP, GARDEN, landscape

COMPONENTS: Final = (ETCDS, GENERIC_KUBECONFIG)


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


async def foreseen(client: Client, garden: JsonObject = GARDEN) -> Foreseen:
    return await foresee(client, garden, template, SystemClock(), COMPONENTS)


def names(found: Landscape) -> dict[str, str]:
    return {name: each.current.object_name for name, each in found.credentials.generated.items()}


async def test_missing_credentials_are_predicted_but_not_generated(
    client: Client, requests: Requests
) -> None:
    found = await foreseen(client)
    assert requests.methods == {"GET"}
    assert all(write.before is None for write in found.credentials)
    created = {write.identity.key.name for write in found.credentials}
    assert set(names(found.built.landscape).values()) <= created
    assert await client.list(SECRET, "garden") == []


async def test_existing_credentials_are_those_of_the_next_run(
    client: Client, requests: Requests
) -> None:
    built = await build(client, GARDEN, template, COMPONENTS, SystemClock())
    requests.methods.clear()

    found = await foreseen(client)
    assert requests.methods == {"GET"}
    assert found.credentials == ()
    assert names(found.built.landscape) == names(built.landscape)
    assert ETCDS.objects(found.built.landscape) == ETCDS.objects(built.landscape)


async def test_a_deleted_credential_is_predicted_under_its_name(client: Client) -> None:
    built = await build(client, GARDEN, template, COMPONENTS, SystemClock())
    lost = names(built.landscape)["generic-token-kubeconfig"]
    await client.delete(SECRET, Key("garden", lost))

    found = await foreseen(client)
    assert [write.identity.key.name for write in found.credentials] == [lost]


async def test_missing_references_are_listed_and_replaced_by_placeholders(
    client: Client, requests: Requests
) -> None:
    found = await foreseen(client, apply_merge_patch(GARDEN, BACKED_UP))
    assert [(each.kind, each.key.name) for each in found.missing] == [("Secret", "backup")]
    assert ("Secret", Key("garden", "backup")) in found.built.landscape.references
    assert requests.methods == {"GET"}
