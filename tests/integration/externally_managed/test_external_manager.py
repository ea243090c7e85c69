"""The external manager on a real API server: spec 50 §5."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pergola.api.cluster_api import CLUSTER, MANAGED_BY, PAUSED, RELEASE_FINALIZERS, SOURCE
from pergola.api.conditions import get_condition
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.externally_managed.contract import (
    Contract,
    contract_of,
    endpoint_of,
    failure_domains_of,
    is_provisioned,
)
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.manager import Settings, external_manager
from pergola.externally_managed.source_watches import SourceWatches
from pergola.externally_managed.sources import PlainSource
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, noticed, running, settled, until, until_gone
from pergola.testing.world import RecordingClient, config_map
from tests.support.cluster_api import (
    NEW,
    OLD,
    cluster,
    infra_cluster,
    infra_cluster_crd,
)
from tests.support.failing_conditions import failing_conditions

LEFT = "newcluster.infrastructure.cluster.x-k8s.io"
NETWORK: JsonObject = {
    "endpoint": {"host": "api.example.org", "port": 6443},
    "failureDomains": [{"name": "a"}, {"name": "b", "controlPlane": False}],
    "spec": {"network": {"id": "net-1", "subnets": [{"id": "s-1"}, {"id": "s-2"}]}},
}


class Site:
    """A namespace with InfraClusters, and a client that records its writes."""

    def __init__(self, client: RecordingClient, namespace: str, gvk: GroupVersionKind) -> None:
        self.client = client
        self.namespace = namespace
        self.gvk = gvk
        self.contract: Contract = contract_of(infra_cluster_crd(gvk))
        self.key = Key(namespace, "demo")
        self.metrics = Metrics()

    def manager(self) -> Unit:
        return external_manager(
            self.client,
            Managed(self.gvk, self.contract, (LEFT,)),
            {"plain": PlainSource(self.client)},
            Settings(namespace=self.namespace),
            metrics=self.metrics,
        )

    async def describe(self, network: JsonObject | str = "", name: str = "net") -> None:
        text = network if isinstance(network, str) and network else dump(network or NETWORK)
        described = config_map(name, self.namespace)
        await self.client.create({**described, "data": {"network.yaml": text}})

    async def change(self, network: JsonObject) -> None:
        await self.client.patch(
            CONFIG_MAP, Key(self.namespace, "net"), {"data": {"network.yaml": dump(network)}}
        )

    async def create(
        self,
        *,
        owned: bool = True,
        managed_by: str = "pergola",
        source: str = "configmap/net",
        finalizers: tuple[str, ...] = (),
        of_cluster: JsonObject | None = None,
        **spec: Any,
    ) -> None:
        obj = infra_cluster(
            self.gvk, "demo", self.namespace, {MANAGED_BY: managed_by, SOURCE: source}, **spec
        )
        obj["metadata"]["finalizers"] = list(finalizers)
        if not owned:
            del obj["metadata"]["labels"]
        await self.client.create(obj)
        if owned:
            await self.client.create(
                cluster("demo", self.namespace, self.gvk, **(of_cluster or {}))
            )

    async def until_ready(self, status: str, reason: str) -> JsonObject:
        def says(obj: JsonObject) -> bool:
            condition = get_condition(maps_at(obj, "status", "conditions"), "Ready") or {}
            return (condition.get("status"), condition.get("reason")) == (status, reason)

        return await until(self.client, self.gvk, self.key, says)

    def message(self, obj: JsonObject) -> str:
        found = get_condition(maps_at(obj, "status", "conditions"), "Ready") or {}
        return str(found.get("message"))


@pytest.fixture(params=[OLD, NEW], ids=["v1beta1", "v1beta2"])
def site(request: pytest.FixtureRequest, infra_client: RecordingClient, namespace: str) -> Site:
    return Site(infra_client, namespace, request.param)


def written(site: Site) -> list[str]:
    """Return the writes to InfraClusters."""
    return [write for write in site.client.taken() if f" {site.gvk.kind} " in write]


# Must hold


async def test_a_complete_network_takes_one_apply_and_one_status_write_and_then_none(
    site: Site,
) -> None:
    await site.describe()
    await site.create()
    site.client.taken()
    manager = site.manager()
    async with running(manager):
        obj = await site.until_ready("True", "NetworkReady")
        await settled(manager, site.client)
        assert failing_conditions(site.metrics) == set()
    assert str(endpoint_of(obj)) == "api.example.org:6443"
    assert obj["spec"]["network"] == NETWORK["spec"]["network"]
    assert is_provisioned(obj, site.contract.version)
    domains = failure_domains_of(obj, site.contract.version)
    assert [(domain.name, domain.control_plane) for domain in domains] == [
        ("a", True),
        ("b", False),
    ]
    kind = site.gvk.kind
    assert written(site) == [f"apply {kind} {site.key}", f"patch/status {kind} {site.key}"]


async def test_a_users_endpoint_is_kept_and_the_finding_names_both(site: Site) -> None:
    await site.describe()
    await site.create(controlPlaneEndpoint={"host": "mine.example.org", "port": 443})
    async with running(site.manager()):
        obj = await site.until_ready("False", "Conflict")
        await noticed()
        assert failing_conditions(site.metrics) == {(site.gvk.kind, "demo", "Ready")}
    assert str(endpoint_of(obj)) == "mine.example.org:443"
    assert "mine.example.org" in site.message(obj)
    assert "api.example.org" in site.message(obj)


async def test_a_paused_cluster_gets_only_the_paused_condition(site: Site) -> None:
    await site.describe()
    await site.create()
    await site.client.patch(CLUSTER, site.key, {"spec": {"paused": True}})
    site.client.taken()
    manager = site.manager()
    async with running(manager):
        if site.gvk == NEW:
            await until(
                site.client,
                site.gvk,
                site.key,
                lambda obj: bool(get_condition(maps_at(obj, "status", "conditions"), "Paused")),
            )
        await settled(manager, site.client)
        expected = [f"patch/status {site.gvk.kind} {site.key}"] if site.gvk == NEW else []
        assert written(site) == expected
        await site.client.patch(CLUSTER, site.key, {"spec": {"paused": False}})
        await site.until_ready("True", "NetworkReady")


async def test_the_annotation_on_the_object_pauses_it_too(site: Site) -> None:
    await site.describe()
    await site.create()
    paused: JsonObject = {"metadata": {"annotations": {PAUSED: ""}}}
    await site.client.patch(site.gvk, site.key, paused)
    manager = site.manager()
    async with running(manager):
        await settled(manager, site.client)
        obj = await site.client.get(site.gvk, site.key)
        assert "network" not in obj["spec"]
        paused["metadata"]["annotations"][PAUSED] = None
        await site.client.patch(site.gvk, site.key, paused)
        await site.until_ready("True", "NetworkReady")


async def test_a_manager_that_was_killed_between_its_two_writes_completes_them(
    site: Site, kubeconfig: Path
) -> None:
    await site.describe()
    await site.create()
    killed = asyncio.Event()

    class Killed(RecordingClient):
        async def patch(self, *args: Any, **kwargs: Any) -> JsonObject:
            killed.set()
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    async with Killed.connect(load(kubeconfig)) as client:
        first = Site(client, site.namespace, site.gvk)
        async with running(first.manager()):
            async with asyncio.timeout(PATIENCE):
                await killed.wait()
    half = await site.client.get(site.gvk, site.key)
    assert half["spec"]["network"]["id"] == "net-1"
    assert "status" not in half
    async with running(site.manager()):
        await site.until_ready("True", "NetworkReady")


# The steps before, between and after them


async def test_objects_of_other_managers_are_left_alone(site: Site) -> None:
    await site.describe()
    await site.create(managed_by="terraform")
    site.client.taken()
    manager = site.manager()
    async with running(manager):
        await settled(manager, site.client)
    assert written(site) == []
    assert "status" not in await site.client.get(site.gvk, site.key)


async def test_an_object_without_a_cluster_waits_and_reports_that(site: Site) -> None:
    await site.describe()
    await site.create(owned=False)
    async with running(site.manager()):
        await site.until_ready("False", "WaitingForCluster")
        await site.client.create(cluster("demo", site.namespace, site.gvk))
        owner = await site.client.get(CLUSTER, site.key)
        reference = {
            "apiVersion": CLUSTER.api_version,
            "kind": "Cluster",
            "name": "demo",
            "uid": owner["metadata"]["uid"],
        }
        await site.client.patch(site.gvk, site.key, {"metadata": {"ownerReferences": [reference]}})
        await site.until_ready("True", "NetworkReady")


async def test_a_missing_or_invalid_source_is_explained_and_watched(site: Site) -> None:
    await site.create()
    async with running(site.manager()):
        obj = await site.until_ready("False", "SourceNotFound")
        assert f"ConfigMap {site.namespace}/net" in site.message(obj)
        await site.describe("endpoint: {host: 7}\nfailureDomains: [{}]\n")
        obj = await site.until_ready("False", "SourceInvalid")
        assert "endpoint.port" in site.message(obj)
        assert "failureDomains[0]" in site.message(obj)
        assert "network" not in obj["spec"]
        await site.change(NETWORK)
        await site.until_ready("True", "NetworkReady")


@pytest.mark.parametrize(
    "source",
    ["", "net", "deployment/net", "configmap/", "secret/=", "secret/a,b", "configmap/../x"],
)
async def test_an_annotation_that_does_not_name_a_source_is_explained(
    site: Site, source: str
) -> None:
    await site.create(source=source)
    async with running(site.manager()):
        obj = await site.until_ready("False", "SourceInvalid")
    assert "configmap/<name>" in site.message(obj)


async def test_a_secret_can_be_the_source_and_its_content_is_never_shown(site: Site) -> None:
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "net", "namespace": site.namespace},
        "stringData": {"network.yaml": "endpoint: {host: api.example.org"},
    }
    await site.client.create(secret)
    await site.create(source="secret/net")
    async with running(site.manager()):
        obj = await site.until_ready("False", "SourceInvalid")
        assert "api.example.org" not in site.message(obj)
        good = {"stringData": {"network.yaml": dump(NETWORK)}}
        await site.client.patch(SECRET, Key(site.namespace, "net"), good)
        await site.until_ready("True", "NetworkReady")


async def test_a_changed_network_changes_the_failure_domains_and_our_fields(
    site: Site,
) -> None:
    await site.describe()
    await site.create()
    async with running(site.manager()):
        await site.until_ready("True", "NetworkReady")
        spec = {"network": {"id": "net-1", "subnets": [{"id": "s-3"}]}}
        await site.change({**NETWORK, "failureDomains": [{"name": "c"}], "spec": spec})
        obj = await until(
            site.client,
            site.gvk,
            site.key,
            lambda obj: len(failure_domains_of(obj, site.contract.version)) == 1,
        )
    assert obj["spec"]["network"]["subnets"] == [{"id": "s-3"}]
    assert is_provisioned(obj, site.contract.version)


async def test_a_missing_network_is_reported_but_readiness_is_kept(site: Site) -> None:
    await site.describe()
    await site.create()
    async with running(site.manager()):
        await site.until_ready("True", "NetworkReady")
        await site.client.delete(CONFIG_MAP, Key(site.namespace, "net"))
        obj = await site.until_ready("False", "SourceNotFound")
    assert is_provisioned(obj, site.contract.version)
    assert failure_domains_of(obj, site.contract.version)


async def test_a_network_that_was_deleted_before_its_watch_began_is_noticed(site: Site) -> None:
    await site.create()
    objects: Cache[JsonObject] = Cache(
        site.client, site.gvk, lambda obj: obj, namespace=site.namespace
    )
    noticed: asyncio.Queue[Key] = asyncio.Queue()
    watches = SourceWatches(site.client, objects, "pergola", noticed.put_nowait)
    async with running(Unit(caches=[objects], tasks=[watches.run])), asyncio.timeout(PATIENCE):
        assert await noticed.get() == site.key


async def test_an_endpoint_that_the_cluster_has_copied_is_kept_and_the_finding_names_both(
    site: Site,
) -> None:
    await site.describe()
    await site.create()
    async with running(site.manager()):
        await site.until_ready("True", "NetworkReady")
        taken = {"spec": {"controlPlaneEndpoint": {"host": "api.example.org", "port": 6443}}}
        await site.client.patch(CLUSTER, site.key, taken)
        await noticed()  # watches of two kinds are not synchronized
        await site.change({**NETWORK, "endpoint": {"host": "new.example.org", "port": 443}})
        obj = await site.until_ready("False", "NetworkIncomplete")
        assert "new.example.org:443" in site.message(obj)
        assert str(endpoint_of(obj)) == "api.example.org:6443"
        await site.change({name: NETWORK[name] for name in NETWORK if name != "endpoint"})
        obj = await site.until_ready("True", "NetworkReady")
        assert str(endpoint_of(obj)) == "api.example.org:6443"


async def test_an_endpoint_is_corrected_until_the_cluster_has_copied_it(site: Site) -> None:
    await site.describe()
    await site.create()
    async with running(site.manager()):
        await site.until_ready("True", "NetworkReady")
        await site.change({**NETWORK, "endpoint": {"host": "new.example.org", "port": 443}})
        await until(
            site.client,
            site.gvk,
            site.key,
            lambda obj: str(endpoint_of(obj)) == "new.example.org:443",
        )


async def test_an_object_with_an_invalid_host_of_a_user_never_becomes_ready(site: Site) -> None:
    await site.describe({"failureDomains": [{"name": "a"}]})
    await site.create(controlPlaneEndpoint={"host": "https://api.example.org", "port": 443})
    async with running(site.manager()):
        obj = await site.until_ready("False", "NetworkIncomplete")
        assert "without a scheme" in site.message(obj)
        assert not is_provisioned(obj, site.contract.version)


async def test_an_empty_host_is_filled_even_if_it_has_another_owner(site: Site) -> None:
    await site.describe()
    empty = {"host": "", "port": 0} if site.gvk == OLD else None
    await site.create(controlPlaneEndpoint=empty)
    async with running(site.manager()):
        obj = await site.until_ready("True", "NetworkReady")
    assert str(endpoint_of(obj)) == "api.example.org:6443"


async def test_an_object_without_an_endpoint_is_not_ready(site: Site) -> None:
    await site.describe({"failureDomains": [{"name": "a"}]})
    await site.create()
    async with running(site.manager()):
        obj = await site.until_ready("False", "NetworkIncomplete")
        assert "endpoint" in site.message(obj)
        assert not is_provisioned(obj, site.contract.version)
        mine = {"spec": {"controlPlaneEndpoint": {"host": "mine.example.org", "port": 443}}}
        await site.client.patch(site.gvk, site.key, mine)
        await site.until_ready("True", "NetworkReady")


HOSTED = {"controlPlaneEndpoint": {"host": "203.0.113.9", "port": 6443}}
"""A control plane provider knows the endpoint of a hosted control plane, and sets the Cluster's."""


async def test_the_endpoint_of_the_cluster_is_enough(site: Site) -> None:
    await site.describe({"failureDomains": [{"name": "a"}]})
    await site.create(of_cluster=HOSTED)
    async with running(site.manager()):
        obj = await site.until_ready("True", "NetworkReady")
    assert is_provisioned(obj, site.contract.version)
    assert not endpoint_of(obj).is_valid


async def test_another_endpoint_than_that_of_the_cluster_is_reported(site: Site) -> None:
    await site.describe()
    await site.create(of_cluster=HOSTED)
    async with running(site.manager()):
        obj = await site.until_ready("False", "NetworkIncomplete")
    said = site.message(obj)
    assert "now at api.example.org:6443, but the Cluster keeps 203.0.113.9:6443" in said
    assert str(endpoint_of(obj)) == "203.0.113.9:6443"


async def test_an_object_can_be_deleted_without_the_manager(site: Site) -> None:
    await site.describe()
    await site.create()
    async with running(site.manager()):
        await site.until_ready("True", "NetworkReady")
        await site.client.delete(site.gvk, site.key)
        await until_gone(site.client, site.gvk, site.key)


async def test_a_finalizer_that_the_provider_left_is_reported_and_removed_on_request(
    site: Site,
) -> None:
    await site.describe()
    await site.create(finalizers=(LEFT, "example.org/other"))
    async with running(site.manager()):
        obj = await site.until_ready("True", "NetworkReady")
        assert is_provisioned(obj, site.contract.version)
        assert LEFT in site.message(obj)
        assert "example.org/other" not in site.message(obj)
        await site.client.delete(site.gvk, site.key)
        await site.client.patch(
            site.gvk, site.key, {"metadata": {"annotations": {RELEASE_FINALIZERS: "true"}}}
        )
        await until(
            site.client,
            site.gvk,
            site.key,
            lambda obj: obj["metadata"]["finalizers"] == ["example.org/other"],
        )
        await site.client.patch(site.gvk, site.key, {"metadata": {"finalizers": None}})
        await until_gone(site.client, site.gvk, site.key)


async def test_two_objects_with_one_endpoint_say_so(site: Site) -> None:
    await site.describe()
    await site.create()
    async with running(site.manager()):
        first = await site.until_ready("True", "NetworkReady")
        assert "endpoint" not in site.message(first)
        copied = infra_cluster(
            site.gvk, "copy", site.namespace, {MANAGED_BY: "pergola", SOURCE: "configmap/net"}
        )
        await site.client.create(copied)
        await site.client.create(cluster("copy", site.namespace, site.gvk))
        site.key = Key(site.namespace, "copy")
        second = await site.until_ready("True", "NetworkReady")
    assert f"is the endpoint of {site.namespace}/demo, too" in site.message(second)
