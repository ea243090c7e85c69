"""The CustomResourceDefinitions of a Garden on a real API server (spec 20 §11)."""

import os
import secrets
from collections.abc import AsyncIterator

import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import JsonObject, Key, labels_of, map_at, name_of
from pergola.cli.crds.groups import chosen
from pergola.cli.crds.install import install
from pergola.flow import Graph, run
from pergola.garden.components.crds import CRDS
from pergola.garden.components.definitions import GROUPS
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.operator.reconcile.component_tasks import add_components
from pergola.operator.run.deploy import Deployer
from pergola.sandbox import API_ONLY, Sandbox, start, stop
from pergola.testing.crds import delete_definition, is_established
from pergola.testing.world import RecordingClient
from tests.support.garden import landscape
from tests.support.garden_run import garden_run

ALL: JsonObject = {
    "spec": {"runtimeCluster": {"settings": {"persistentVolumeClaimAutoscaler": {"enabled": True}}}}
}
NAMES = frozenset(name for group in GROUPS for name in group.names)
DNS_RECORDS = Key("", "dnsrecords.extensions.gardener.cloud")


@pytest.fixture
async def bare() -> AsyncIterator[Sandbox]:
    """Yield an empty API server: these definitions would disturb tests that share one."""
    name = f"bare-{os.getpid()}-{secrets.token_hex(3)}"
    yield await start(name, components=API_ONLY)
    await stop(name)


class Requests:
    """A counter of a client's requests by method."""

    def __init__(self) -> None:
        self._sent: list[str] = []

    def __call__(self, method: str, code: str, host: str, seconds: float) -> None:
        self._sent.append(method)

    def taken(self) -> list[str]:
        sent, self._sent = self._sent, []
        return sent


@pytest.fixture
def requests() -> Requests:
    return Requests()


@pytest.fixture
async def recorder(bare: Sandbox, requests: Requests) -> AsyncIterator[RecordingClient]:
    async with RecordingClient.connect(load(bare.kubeconfig), observe=requests) as client:
        yield client


async def set_up(client: Client, deployer: Deployer, *groups: str) -> None:
    site = await garden_run(client, client, landscape(ALL))
    site.deployer = deployer
    graph = Graph("Garden runtime setup")
    components = [CRDS[key] for key in groups or CRDS]
    add_components(graph, components, site)
    await run(graph)


async def test_all_definitions_are_served_and_not_written_again(
    recorder: RecordingClient, requests: Requests
) -> None:
    await set_up(recorder, Deployer(recorder))
    found = {name_of(crd): crd for crd in await recorder.list(CRD)}
    assert found.keys() == NAMES
    assert all(is_established(crd) for crd in found.values())
    assert len(recorder.taken()) == len(NAMES)

    another = Deployer(recorder)
    await set_up(recorder, another)
    assert recorder.taken() == []

    requests.taken()
    await set_up(recorder, another)
    assert recorder.taken() == []
    assert len(requests.taken()) <= 2 * len(GROUPS)


@pytest.mark.soak("commands")
async def test_a_definition_that_another_program_changed_is_restored(
    recorder: RecordingClient,
) -> None:
    deployer = Deployer(recorder)
    await set_up(recorder, deployer, "extensions")
    before = await recorder.get(CRD, DNS_RECORDS)
    names = {**map_at(before, "spec", "names"), "shortNames": ["other"]}
    metadata = {"labels": {"other": "label"}}
    await recorder.patch(CRD, DNS_RECORDS, {"metadata": metadata, "spec": {"names": names}})
    recorder.taken()

    await set_up(recorder, deployer, "extensions")
    assert recorder.taken() == [f"apply CustomResourceDefinition {DNS_RECORDS}"]
    after = await recorder.get(CRD, DNS_RECORDS)
    assert map_at(after, "spec") == map_at(before, "spec")
    assert labels_of(after) == {**labels_of(before), "other": "label"}


@pytest.mark.soak("commands")
async def test_a_definition_that_was_deleted_is_applied_again(recorder: RecordingClient) -> None:
    deployer = Deployer(recorder)
    await set_up(recorder, deployer, "extensions")
    await delete_definition(recorder, DNS_RECORDS)
    await set_up(recorder, deployer, "extensions")
    assert is_established(await recorder.get(CRD, DNS_RECORDS))


@pytest.mark.soak("commands")
async def test_crds_keeps_definitions_of_other_programs_with_different_content(
    recorder: RecordingClient,
) -> None:
    own, [first, *others] = chosen(["pergola", "extensions"])
    spec = {**first["spec"], "names": {**first["spec"]["names"], "shortNames": ["other"]}}
    await recorder.apply({**first, "spec": spec}, manager="another")

    assert await install(recorder, own, [first, *others]) == {name_of(first)}
    found = {name_of(crd): crd for crd in await recorder.list(CRD)}
    assert found.keys() == {name_of(crd) for crd in (*own, first, *others)}
    assert map_at(found[name_of(first)], "spec", "names")["shortNames"] == ["other"]
    assert all(is_established(crd) for crd in found.values())
