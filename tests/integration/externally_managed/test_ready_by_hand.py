"""Infrastructure that users declare ready: spec 50 §7."""

import asyncio
from typing import Any

import pytest

from pergola.api.cluster_api import CLUSTER, MANAGED_BY, PAUSED, READY_BY_HAND, SOURCE
from pergola.api.conditions import get_condition
from pergola.api.kinds import EVENT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.externally_managed.contract import contract_of, is_provisioned
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.manager import Settings
from pergola.externally_managed.ownership import author_of
from pergola.externally_managed.ready_by_hand import ready_by_hand
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, running, settled, until
from pergola.testing.world import RecordingClient
from tests.support.cluster_api import NEW, OLD, cluster, infra_cluster, infra_cluster_crd

ENDPOINT = {"host": "api.example.org", "port": 6443}
FINALIZER = "infrastructure.example.org/cluster"


class Site:
    """One InfraCluster that has another manager."""

    def __init__(self, client: RecordingClient, namespace: str, gvk: GroupVersionKind) -> None:
        self.client = client
        self.namespace = namespace
        self.gvk = gvk
        self.key = Key(namespace, "demo")
        self.contract = contract_of(infra_cluster_crd(gvk))

    def controller(self) -> Unit:
        settings = Settings(namespace=self.namespace)
        managed = Managed(self.gvk, self.contract, (FINALIZER,))
        return ready_by_hand(self.client, managed, settings, metrics=Metrics())

    async def create(self, annotations: dict[str, str], **spec: Any) -> None:
        await self.client.create(
            infra_cluster(self.gvk, "demo", self.namespace, annotations, **spec)
        )
        await self.client.create(cluster("demo", self.namespace, self.gvk))

    async def annotate(self, **annotations: str | None) -> None:
        names = {"ready": READY_BY_HAND, "managed_by": MANAGED_BY, "paused": PAUSED}
        change = {names[name]: value for name, value in annotations.items()}
        await self.client.patch(self.gvk, self.key, {"metadata": {"annotations": change}})

    async def report(self, reason: str, manager: str = "") -> None:
        """Write a Ready condition as another manager does."""
        said = {
            "type": "Ready",
            "status": "False",
            "reason": reason,
            "message": "no",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        await self.client.patch(
            self.gvk,
            self.key,
            {"status": {"conditions": [said]}},
            subresource="status",
            manager=manager,
        )

    async def event(self) -> JsonObject:
        """Wait for the Event about an ignored mark."""
        async with asyncio.timeout(PATIENCE):
            while not (events := await self.client.list(EVENT, self.namespace)):
                pass
        (event,) = events
        return event

    async def until(self, status: str, reason: str) -> JsonObject:
        return await until(
            self.client, self.gvk, self.key, lambda obj: ready(obj)[:2] == (status, reason)
        )

    async def present(self) -> JsonObject:
        return await self.client.get(self.gvk, self.key)


def ready(obj: JsonObject) -> tuple[str, str, str]:
    condition = get_condition(maps_at(obj, "status", "conditions"), "Ready") or {}
    status, reason = condition.get("status", ""), condition.get("reason", "")
    return status, reason, condition.get("message", "")


@pytest.fixture(params=[OLD, NEW], ids=["v1beta1", "v1beta2"])
def site(request: pytest.FixtureRequest, infra_client: RecordingClient, namespace: str) -> Site:
    return Site(infra_client, namespace, request.param)


# Must hold


async def test_an_object_with_annotation_and_endpoint_becomes_ready(site: Site) -> None:
    await site.create(
        {MANAGED_BY: "terraform", READY_BY_HAND: "true"}, controlPlaneEndpoint=ENDPOINT
    )
    controller = site.controller()
    async with running(controller):
        obj = await site.until("True", "MarkedReadyByUser")
        assert is_provisioned(obj, site.contract.version)
        await settled(controller, site.client)
        site.client.taken()
        await site.annotate(ready="true")
        await settled(controller, site.client)
        assert not [write for write in site.client.taken() if "/status" in write]


async def test_an_object_without_an_endpoint_is_not_ready_and_says_what_to_set(site: Site) -> None:
    await site.create({MANAGED_BY: "terraform", READY_BY_HAND: "true"})
    async with running(site.controller()):
        obj = await site.until("False", "EndpointMissing")
        assert not is_provisioned(obj, site.contract.version)
        assert "spec.controlPlaneEndpoint" in ready(obj)[2]
        await site.client.patch(CLUSTER, site.key, {"spec": {"controlPlaneEndpoint": ENDPOINT}})
        await site.until("True", "MarkedReadyByUser")


async def test_without_a_manager_the_mark_only_causes_a_warning(site: Site) -> None:
    await site.create({READY_BY_HAND: "true"}, controlPlaneEndpoint=ENDPOINT)
    async with running(site.controller()):
        while not (events := await site.client.list(EVENT, site.namespace)):
            pass
        assert "status" not in await site.present()
    (event,) = events
    assert (event["type"], event["reason"]) == ("Warning", "NotExternallyManaged")
    assert "the provider is in charge" in event["note"]


# Safeguards


async def test_only_the_value_true_is_a_mark(site: Site) -> None:
    await site.create(
        {MANAGED_BY: "terraform", READY_BY_HAND: "yes"}, controlPlaneEndpoint=ENDPOINT
    )
    async with running(site.controller()):
        obj = await site.until("False", "MarkInvalid")
        assert '"yes"' in ready(obj)[2]
        assert not is_provisioned(obj, site.contract.version)


async def test_removing_the_mark_changes_only_the_reason(site: Site) -> None:
    await site.create(
        {MANAGED_BY: "terraform", READY_BY_HAND: "true"}, controlPlaneEndpoint=ENDPOINT
    )
    async with running(site.controller()):
        await site.until("True", "MarkedReadyByUser")
        await site.annotate(ready=None)
        obj = await site.until("True", "MarkWithdrawnByUser")
        assert is_provisioned(obj, site.contract.version)
        await site.annotate(ready="true")
        await site.until("True", "MarkedReadyByUser")


@pytest.mark.parametrize(
    "annotations",
    [
        {MANAGED_BY: "pergola", READY_BY_HAND: "true"},
        {MANAGED_BY: "terraform", READY_BY_HAND: "true", PAUSED: ""},
        {MANAGED_BY: "terraform"},
    ],
    ids=["our own", "paused", "unmarked"],
)
async def test_objects_of_pergola_and_paused_or_unmarked_ones_are_left_alone(
    site: Site, annotations: JsonObject
) -> None:
    await site.create(annotations, controlPlaneEndpoint=ENDPOINT)
    controller = site.controller()
    async with running(controller):
        await settled(controller, site.client)
        assert "status" not in await site.present()


async def test_the_condition_of_another_manager_is_left_alone(site: Site) -> None:
    await site.create({MANAGED_BY: "terraform"}, controlPlaneEndpoint=ENDPOINT)
    await site.report("Broken")
    controller = site.controller()
    async with running(controller):
        await site.annotate(ready="true")
        event = await site.event()
        await settled(controller, site.client)
        obj = await site.present()
    assert (event["type"], event["reason"]) == ("Warning", "MarkIgnored")
    assert 'pergola reports condition Ready with reason "Broken"' in event["note"]
    assert ready(obj) == ("False", "Broken", "no")
    assert not is_provisioned(obj, site.contract.version)


async def test_a_condition_that_the_provider_left_does_not_block_a_user(site: Site) -> None:
    await site.create({}, controlPlaneEndpoint=ENDPOINT)
    finalizers = {"metadata": {"finalizers": [FINALIZER]}}
    await site.client.patch(site.gvk, site.key, finalizers)
    await site.report("VpcReconciliationFailed")
    await site.annotate(managed_by="terraform", ready="true")
    async with running(site.controller()):
        obj = await site.until("True", "MarkedReadyByUser")
        assert is_provisioned(obj, site.contract.version)
    await site.client.patch(site.gvk, site.key, {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("reason", ["NetworkIncomplete", "SourceNotFound"])
async def test_a_condition_that_pergola_left_does_not_block_a_user(site: Site, reason: str) -> None:
    await site.create({MANAGED_BY: "terraform"}, controlPlaneEndpoint=ENDPOINT)
    await site.report(reason)
    async with running(site.controller()):
        await site.annotate(ready="true")
        await site.until("True", "MarkedReadyByUser")


async def test_the_verdict_of_another_pergola_is_left_alone_while_it_is_in_charge(
    site: Site,
) -> None:
    await site.create({MANAGED_BY: "pergola-east"}, controlPlaneEndpoint=ENDPOINT)
    await site.report("SourceInvalid", author_of("pergola-east"))
    controller = site.controller()
    async with running(controller):
        await site.annotate(ready="true")
        event = await site.event()
        await settled(controller, site.client)
        assert not is_provisioned(await site.present(), site.contract.version)
        await site.annotate(managed_by="terraform")
        await site.until("True", "MarkedReadyByUser")
    assert event["reason"] == "MarkIgnored"
    assert "pergola-east reports condition Ready" in event["note"]


async def test_an_object_that_another_pergola_fills_is_left_alone_with_a_reason(site: Site) -> None:
    await site.create(
        {MANAGED_BY: "pergola-east", SOURCE: "configmap/net", READY_BY_HAND: "true"},
        controlPlaneEndpoint=ENDPOINT,
    )
    controller = site.controller()
    async with running(controller):
        event = await site.event()
        await settled(controller, site.client)
        assert "status" not in await site.present()
    assert event["reason"] == "MarkIgnored"
    assert f"remove annotation {SOURCE}" in event["note"]


async def test_another_manager_is_overruled_only_once(site: Site) -> None:
    await site.create(
        {MANAGED_BY: "terraform", READY_BY_HAND: "true"}, controlPlaneEndpoint=ENDPOINT
    )
    controller = site.controller()
    async with running(controller):
        await site.until("True", "MarkedReadyByUser")
        await site.report("NetworkIncomplete")
        await site.event()
        await settled(controller, site.client)
        obj = await site.present()
    assert ready(obj)[:2] == ("False", "NetworkIncomplete")
    assert is_provisioned(obj, site.contract.version)
