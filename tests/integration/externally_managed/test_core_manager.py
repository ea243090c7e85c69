"""Pergola beside Cluster API's real core manager: spec 50 §4 and §9, in both contracts."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pergola.api.cluster_api import (
    CLUSTER,
    CLUSTER_NAME,
    MANAGED_BY,
    PAUSED,
    READY_BY_HAND,
    SOURCE,
)
from pergola.api.conditions import get_condition
from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    finalizers_of,
    labels_of,
    map_at,
    maps_at,
    owner_references_of,
    uid_of,
)
from pergola.externally_managed.contract import (
    Contract,
    ContractError,
    FailureDomain,
    done,
    failure_domains_of,
    is_provisioned,
    render_failure_domains,
)
from pergola.externally_managed.kinds import Managed, managed_kind
from pergola.externally_managed.manager import Settings, external_manager
from pergola.externally_managed.ready_by_hand import ready_by_hand
from pergola.externally_managed.sources import PlainSource
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.waiting import running, settled, until, until_gone
from pergola.testing.world import RecordingClient, config_map
from tests.support.capi import CoreManager
from tests.support.cluster_api import (
    NEW,
    OLD,
    cluster,
    infra_cluster,
    install,
    untyped_infra_cluster_crd,
)

pytestmark = [
    pytest.mark.soak("originals"),
    pytest.mark.timeout(900),  # the first test may have to build the core manager
    pytest.mark.usefixtures("core"),
]

ENDPOINT = {"host": "api.example.org", "port": 6443}
NETWORK: JsonObject = {
    "endpoint": ENDPOINT,
    "failureDomains": [{"name": "b", "controlPlane": False}, {"name": "a"}],
    "spec": {"network": {"id": "net-1"}},
}
DOMAINS = [{"name": "a", "controlPlane": True}, {"name": "b", "controlPlane": False}]


class Site:
    """A namespace with one Cluster, in which Pergola's writes differ from those of the test."""

    def __init__(
        self, client: Client, pergola: RecordingClient, namespace: str, managed: Managed
    ) -> None:
        self.client = client
        self.pergola = pergola
        self.namespace = namespace
        self.managed = managed
        self.key = Key(namespace, "demo")

    @property
    def gvk(self) -> GroupVersionKind:
        return self.managed.gvk

    @property
    def contract(self) -> Contract:
        return self.managed.contract

    def units(self) -> tuple[Unit, Unit]:
        """Return the units that `pergola infra-manager` runs for a kind."""
        settings, metrics = Settings(namespace=self.namespace), Metrics()
        sources = {"plain": PlainSource(self.pergola)}
        return (
            external_manager(self.pergola, self.managed, sources, settings, metrics=metrics),
            ready_by_hand(self.pergola, self.managed, settings, metrics=metrics),
        )

    async def describe(self, network: JsonObject) -> None:
        obj = {
            **config_map("net", self.namespace),
            "data": {"network.yaml": dump(network)},
        }
        await self.client.apply(obj, manager="test", force=True)

    async def create(self, annotations: dict[str, str], **spec: Any) -> None:
        """Create both objects as a user does, before core links them."""
        obj = infra_cluster(self.gvk, "demo", self.namespace, annotations, **spec)
        del obj["metadata"]["labels"]
        await self.client.create(obj)
        await self.client.create(cluster("demo", self.namespace, self.gvk))

    async def create_external(self) -> None:
        await self.describe(NETWORK)
        await self.create({MANAGED_BY: "pergola", SOURCE: "configmap/net"})

    async def provisioning(self) -> JsonObject:
        """Wait until core has seen infrastructure that is not ready, and return the Cluster."""
        return await self.until_cluster(
            lambda obj: (phase(obj), infrastructure(obj)[1]) == ("Provisioning", "NotReady")
        )

    async def provisioned(self) -> JsonObject:
        return await self.until_cluster(lambda obj: phase(obj) == "Provisioned")

    async def until_cluster(self, holds: Callable[[JsonObject], bool]) -> JsonObject:
        return await until(self.client, CLUSTER, self.key, holds)

    async def until_infrastructure(self, status: str, reason: str) -> JsonObject:
        return await self.until_cluster(lambda obj: infrastructure(obj)[:2] == (status, reason))

    async def until_infra(self, holds: Callable[[JsonObject], bool]) -> JsonObject:
        return await until(self.client, self.gvk, self.key, holds)

    async def set_status(self, status: JsonObject) -> None:
        patch = {"status": status}
        await self.client.patch(self.gvk, self.key, patch, subresource="status")

    async def patch_cluster(self, patch: JsonObject) -> None:
        await self.client.patch(CLUSTER, self.key, patch)


def phase(obj: JsonObject) -> str:
    return str(map_at(obj, "status").get("phase", ""))


def infrastructure(obj: JsonObject) -> tuple[str, str, str]:
    """Return the Cluster's condition InfrastructureReady."""
    found = get_condition(maps_at(obj, "status", "conditions"), "InfrastructureReady") or {}
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def domains(obj: JsonObject) -> list[JsonObject]:
    return maps_at(obj, "status", "failureDomains")


@pytest.fixture(params=[OLD, NEW], ids=["v1beta1", "v1beta2"])
async def site(request: pytest.FixtureRequest, core_sandbox: Sandbox) -> AsyncIterator[Site]:
    async with new_site(core_sandbox, request.param) as site:
        yield site


@asynccontextmanager
async def new_site(sandbox: Sandbox, gvk: GroupVersionKind) -> AsyncGenerator[Site]:
    namespace = f"site-{secrets.token_hex(4)}"
    config = load(sandbox.kubeconfig)
    async with Client.connect(config) as client, RecordingClient.connect(config) as pergola:
        await client.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        )
        managed = await managed_kind(client, gvk.group_kind)
        yield Site(client, pergola, namespace, managed)


# Must hold (4)


async def test_a_cluster_with_external_infrastructure_becomes_provisioned(site: Site) -> None:
    await site.create_external()
    units = site.units()
    async with running(*units):
        obj = await site.provisioned()
        for unit in units:
            await settled(unit, site.client)
    assert obj["spec"]["controlPlaneEndpoint"] == ENDPOINT
    assert domains(obj) == DOMAINS
    assert infrastructure(obj)[:2] == ("True", "NetworkReady")
    assert map_at(obj, "status", "initialization")["infrastructureProvisioned"] is True
    infra = await site.client.get(site.gvk, site.key)
    assert [owner["uid"] for owner in owner_references_of(infra)] == [uid_of(obj)]
    assert labels_of(infra)[CLUSTER_NAME] == "demo"
    assert finalizers_of(infra) == []


async def test_pergola_writes_only_what_is_necessary_beside_core(site: Site) -> None:
    await site.create_external()
    await site.until_infra(lambda obj: bool(owner_references_of(obj)))
    units = site.units()
    async with running(*units):
        await site.provisioned()
        for unit in units:
            await settled(unit, site.client)
    kind = site.gvk.kind
    assert site.pergola.taken() == [f"apply {kind} {site.key}", f"patch/status {kind} {site.key}"]


async def test_without_the_readiness_field_a_cluster_stays_provisioning(site: Site) -> None:
    await site.create({MANAGED_BY: "terraform"}, controlPlaneEndpoint=ENDPOINT)
    async with running(*site.units()):
        obj = await site.provisioning()
        assert infrastructure(obj)[2] == (
            f"{site.gvk.kind} status.initialization.provisioned is false"
        )
        assert "controlPlaneEndpoint" not in obj["spec"]
        await site.set_status(done(site.contract.version))
        obj = await site.provisioned()
    assert infrastructure(obj)[:2] == ("True", "Ready")
    assert site.pergola.taken() == []


async def test_infrastructure_that_is_marked_ready_by_hand_provisions_the_cluster(
    site: Site,
) -> None:
    await site.create({MANAGED_BY: "terraform"}, controlPlaneEndpoint=ENDPOINT)
    async with running(*site.units()):
        await site.provisioning()
        mark = {"metadata": {"annotations": {READY_BY_HAND: "true"}}}
        await site.client.patch(site.gvk, site.key, mark)
        obj = await site.provisioned()
    assert obj["spec"]["controlPlaneEndpoint"] == ENDPOINT
    assert infrastructure(obj)[:2] == ("True", "MarkedReadyByUser")


async def test_deleting_a_cluster_leaves_only_the_description_of_the_network(site: Site) -> None:
    await site.create_external()
    async with running(*site.units()):
        await site.provisioned()
        await site.client.delete(CLUSTER, site.key)
        await until_gone(site.client, CLUSTER, site.key)
        assert await site.client.list(site.gvk, site.namespace) == []
    # The ConfigMap belongs to the user, as does the network that it describes.
    assert await site.client.get(CONFIG_MAP, Key(site.namespace, "net"))


async def test_an_endpoint_is_kept_when_the_network_gets_another_one(
    site: Site,
) -> None:
    await site.create_external()
    async with running(*site.units()):
        await site.provisioned()
        other = {"host": "other.example.org", "port": 443}
        await site.describe({**NETWORK, "endpoint": other, "failureDomains": [{"name": "c"}]})
        # Pergola writes the spec before the status, so it has decided on the endpoint by now.
        obj = await site.until_cluster(lambda obj: [d["name"] for d in domains(obj)] == ["c"])
        infra = await site.client.get(site.gvk, site.key)
    assert infra["spec"]["controlPlaneEndpoint"] == ENDPOINT
    assert obj["spec"]["controlPlaneEndpoint"] == ENDPOINT
    assert phase(obj) == "Provisioned"


async def test_removed_failure_domains_are_removed_from_the_cluster(site: Site) -> None:
    await site.create_external()
    async with running(*site.units()):
        await site.until_cluster(lambda obj: len(domains(obj)) == 2)
        await site.describe({**NETWORK, "failureDomains": []})
        obj = await site.until_cluster(lambda obj: domains(obj) == [])
    assert phase(obj) == "Provisioned"


# Other actions of core (§4.4)


async def test_a_cluster_reports_a_missing_network_and_stays_provisioned(
    site: Site,
) -> None:
    await site.create_external()
    async with running(*site.units()):
        await site.provisioned()
        await site.client.delete(CONFIG_MAP, Key(site.namespace, "net"))
        obj = await site.until_infrastructure("False", "SourceNotFound")
    assert f"ConfigMap {site.namespace}/net" in infrastructure(obj)[2]
    assert phase(obj) == "Provisioned"
    assert map_at(obj, "status", "initialization")["infrastructureProvisioned"] is True


@pytest.mark.parametrize("kind", [OLD, NEW], ids=["v1beta1", "v1beta2"])
async def test_core_rejects_the_same_wrong_types_as_our_contract(
    kind: GroupVersionKind, core: CoreManager, core_sandbox: Sandbox
) -> None:
    """A provider's CRD may lack a schema: then only readers can refuse a value of a wrong type."""
    gvk = kind._replace(kind=f"Untyped{kind.kind}")
    async with Client.connect(load(core_sandbox.kubeconfig)) as client:
        await install(client, untyped_infra_cluster_crd(gvk))
    async with new_site(core_sandbox, gvk) as site:
        await check_wrong_types(site, core)


async def check_wrong_types(site: Site, core: CoreManager) -> None:
    await site.create({MANAGED_BY: "terraform"}, controlPlaneEndpoint=ENDPOINT)
    await site.provisioning()
    version = site.contract.version
    done_wrongly: JsonObject = (
        {"ready": "true"} if version == "v1beta1" else {"initialization": {"provisioned": "true"}}
    )
    await site.set_status(done_wrongly)
    infra = await site.client.get(site.gvk, site.key)
    with pytest.raises(ContractError) as raised:
        is_provisioned(infra, version)
    await core.until_logged(str(raised.value), str(site.key))
    assert phase(await site.client.get(CLUSTER, site.key)) == "Provisioning"
    other_shape = render_failure_domains(
        [FailureDomain("a")], "v1beta2" if version == "v1beta1" else "v1beta1"
    )
    await site.set_status({**done(version), "failureDomains": other_shape})
    infra = await site.client.get(site.gvk, site.key)
    with pytest.raises(ContractError):
        failure_domains_of(infra, version)
    await core.until_logged(".status.failureDomains accessor error", str(site.key))
    await site.set_status({"failureDomains": render_failure_domains([FailureDomain("a")], version)})
    obj = await site.until_cluster(lambda obj: bool(domains(obj)))
    assert phase(obj) == "Provisioned"


# Acceptance (§9)


@pytest.mark.parametrize("how", ["Cluster", "annotation"])
async def test_a_paused_cluster_waits_and_continues_when_unpaused(site: Site, how: str) -> None:
    await site.create_external()
    units = site.units()
    async with running(*units):
        await site.provisioned()
        await pause(site, how, paused=True)
        if site.contract.version == "v1beta2":
            await site.until_infra(lambda obj: condition(obj, "Paused") == "True")
        for unit in units:  # Pergola has to observe this before the network changes
            await settled(unit, site.client)
        await site.describe({**NETWORK, "failureDomains": [{"name": "c"}]})
        for unit in units:
            await settled(unit, site.client)
        infra = await site.client.get(site.gvk, site.key)
        assert [d.name for d in failure_domains_of(infra, site.contract.version)] == ["a", "b"]
        await pause(site, how, paused=False)
        await site.until_cluster(lambda obj: [d["name"] for d in domains(obj)] == ["c"])


async def pause(site: Site, how: str, *, paused: bool) -> None:
    if how == "Cluster":
        await site.patch_cluster({"spec": {"paused": paused}})
    else:
        mark = {"metadata": {"annotations": {PAUSED: "" if paused else None}}}
        await site.client.patch(site.gvk, site.key, mark)


def condition(obj: JsonObject, kind: str) -> str:
    found = get_condition(maps_at(obj, "status", "conditions"), kind) or {}
    return str(found.get("status", ""))


async def test_a_managed_infra_cluster_is_untouched_by_pergola(site: Site) -> None:
    await site.describe(NETWORK)
    units = site.units()
    async with running(*units):
        # The test acts as its provider.
        await site.create({SOURCE: "configmap/net"}, controlPlaneEndpoint=ENDPOINT)
        await site.until_infra(lambda obj: bool(owner_references_of(obj)))
        shape = render_failure_domains([FailureDomain("z")], site.contract.version)
        await site.set_status({**done(site.contract.version), "failureDomains": shape})
        obj = await site.provisioned()
        await site.patch_cluster({"spec": {"paused": True}})
        await site.patch_cluster({"spec": {"paused": False}})
        await site.client.delete(CLUSTER, site.key)
        await until_gone(site.client, CLUSTER, site.key)
        for unit in units:
            await settled(unit, site.client)
    assert domains(obj) == [{"name": "z", "controlPlane": True}]
    assert site.pergola.taken() == []


async def test_events_during_an_outage_of_core_are_caught_up_with(
    site: Site, core: CoreManager
) -> None:
    await site.create_external()
    async with running(*site.units()):
        await site.provisioned()
        await core.stop()
        try:
            await site.describe({**NETWORK, "failureDomains": [{"name": "c"}]})
            version = site.contract.version
            await site.until_infra(
                lambda obj: [d.name for d in failure_domains_of(obj, version)] == ["c"]
            )
        finally:
            await core.start()
        obj = await site.until_cluster(lambda obj: [d["name"] for d in domains(obj)] == ["c"])
        assert phase(obj) == "Provisioned"
        assert obj["spec"]["controlPlaneEndpoint"] == ENDPOINT
