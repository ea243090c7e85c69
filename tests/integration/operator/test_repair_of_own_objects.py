"""What the operator made and others delete is back at once; its own writes trigger nothing.

The components of the Garden are hollow, and its API servers and credentials are real.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from pergola.api.kinds import DEPLOYMENT, SECRET, SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, name_of, uid_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.kinds import DNS_RECORD
from pergola.garden.components.kube_apiserver_exposure.address import SERVICE_KEY
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.manifests import manifest
from pergola.operator.copies import Copies
from pergola.operator.reconcile.controller import garden_unit
from pergola.operator.reconcile.extension_resources.installed import managed_resource
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import API_ONLY, Sandbox
from pergola.testing.crds import install_garden_extension_crds
from pergola.testing.shared import private
from pergola.testing.waiting import running, settled, until
from tests.support.garden_extensions import garden_actuator, operator_extension
from tests.support.garden_extensions import garden_unit as extension_unit
from tests.support.garden_run import GivenVirtualCluster
from tests.support.garden_world import MANAGED
from tests.support.gardens import with_values
from tests.support.hollow_garden import (
    LOCAL,
    SETTINGS,
    everything_works,
    install_runtime,
    install_virtual,
    uninstall_virtual,
)

pytestmark = pytest.mark.timeout(600)

OF_OPERATOR = "made!=by-test"
RECONCILIATIONS = "controller_runtime_reconcile_total"


@dataclass
class World:
    """The runtime cluster of a Garden, and its running controller."""

    runtime: Client
    unit: Unit
    metrics: Metrics

    async def rest(self) -> int:
        """Wait until the Garden is reconciled and nothing is left to do; return the runs so far."""

        def is_reconciled(garden: JsonObject) -> bool:
            return map_at(garden, "status", "lastOperation").get("state") == "Succeeded"

        await until(self.runtime, GARDEN, LOCAL, is_reconciled)
        await settled(self.unit, self.runtime)
        await until(self.runtime, GARDEN, LOCAL, is_reconciled)
        return self.runs()

    def runs(self) -> int:
        """Return the number of reconciliations."""
        return sum(
            int(sample.value)
            for family in self.metrics.registry.collect()
            for sample in family.samples
            if sample.name == RECONCILIATIONS and sample.labels["controller"] == "garden"
        )


@pytest.fixture(scope="module")
def runtime_sandbox() -> Iterator[Sandbox]:
    with private(API_ONLY, prepare=install_runtime) as own:
        yield own


@pytest.fixture
async def world(runtime_sandbox: Sandbox, garden_sandbox: Sandbox) -> AsyncIterator[World]:
    """Yield a Garden at rest."""
    async with AsyncExitStack() as stack:
        runtime, virtual = [
            await stack.enter_async_context(Client.connect(load(each.kubeconfig)))
            for each in (runtime_sandbox, garden_sandbox)
        ]
        await install_virtual(virtual, 0)
        stack.push_async_callback(uninstall_virtual, virtual)
        await stack.enter_async_context(everything_works(runtime, virtual))
        await ask_for_records(runtime)
        records = extension_unit(runtime, garden_actuator(DNS_RECORD, "local"))
        await stack.enter_async_context(running(records))
        copies, metrics = Copies(runtime), Metrics()
        unit = garden_unit(copies, GivenVirtualCluster(virtual), SETTINGS, metrics=metrics)
        await stack.enter_async_context(running(copies.unit, unit))
        found = World(runtime, unit, metrics)
        await found.rest()
        yield found


async def test_a_garden_at_rest_is_not_reconciled(world: World) -> None:
    before = await world.rest()
    await world.runtime.create(secret("others"))
    await world.runtime.delete(SECRET, Key("garden", "others"))

    assert await world.rest() == before


@pytest.mark.parametrize(
    ("gvk", "labels"),
    [
        (SECRET, f"{MANAGED},name=etcd-client"),
        (SECRET, "role=kube-apiserver-etcd-encryption-configuration"),
        (DEPLOYMENT, "app=kubernetes,role=apiserver"),
        (MANAGED_RESOURCE, OF_OPERATOR),
        (DNS_RECORD.gvk, None),
    ],
    ids=["credential", "configuration", "Deployment", "ManagedResource", "DNSRecord"],
)
async def test_a_deleted_object_is_back_at_once(
    world: World, gvk: GroupVersionKind, labels: str | None
) -> None:
    before = world.runs()
    [deleted, *_] = await world.runtime.list(gvk, "garden", labels=labels)
    await world.runtime.delete(gvk, Key.of(deleted))

    uid = uid_of(deleted)
    await until(world.runtime, gvk, Key.of(deleted), lambda obj: uid_of(obj) != uid)
    assert await world.rest() == before + 1


async def test_several_deleted_objects_are_all_back(world: World) -> None:
    deleted = await world.runtime.list(SECRET, "garden", labels=MANAGED)
    names = {name_of(each) for each in deleted if name_of(each).startswith(("etcd", "vpa", "gen"))}
    assert len(names) > 2
    for name in names:
        await world.runtime.delete(SECRET, Key("garden", name))
        await asyncio.sleep(0)
    await asyncio.gather(*(until(world.runtime, SECRET, Key("garden", n), bool) for n in names))
    after = await world.rest()

    assert await world.rest() == after


async def test_an_edited_managed_resource_is_restored(world: World) -> None:
    [edited, *_] = await world.runtime.list(MANAGED_RESOURCE, "garden", labels=OF_OPERATOR)
    key, before = Key.of(edited), world.runs()
    await world.runtime.patch(MANAGED_RESOURCE, key, {"metadata": {"labels": {"a": "b"}}})
    assert await world.rest() == before

    await world.runtime.patch(MANAGED_RESOURCE, key, {"spec": {"secretRefs": [{"name": "x"}]}})
    await until(world.runtime, MANAGED_RESOURCE, key, lambda obj: obj["spec"] == edited["spec"])
    assert await world.rest() == before + 1


def secret(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "garden"},
    }


async def ask_for_records(client: Client) -> None:
    """Give the Garden DNS records; their load balancer has an address."""
    gateway = manifest("v1", "Service", SERVICE_KEY.name, namespace=SERVICE_KEY.namespace)
    gateway["spec"] = {"type": "LoadBalancer", "ports": [{"port": 443}]}
    await install_garden_extension_crds(client)
    key = managed_resource("local")
    installed = manifest(
        MANAGED_RESOURCE.api_version,
        MANAGED_RESOURCE.kind,
        key.name,
        namespace=key.namespace,
        labels={"made": "by-test"},
    )
    for obj in (
        manifest("v1", "Namespace", SERVICE_KEY.namespace),
        gateway,
        {**secret("dns"), "stringData": {"key": "value"}},
        operator_extension("local", "DNSRecord/local"),
        {**installed, "spec": {"class": "seed", "secretRefs": []}},
    ):
        await client.apply(obj, manager="test", force=True)
    address = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    await client.patch(SERVICE, SERVICE_KEY, address, subresource="status")
    provided = {
        "spec.dns": {"providers": [{"name": "p", "type": "local", "secretRef": {"name": "dns"}}]},
        "spec.virtualCluster.dns.domains": [{"name": "garden.example.org", "provider": "p"}],
        "spec.runtimeCluster.ingress.domains": [{"name": "ingress.example.org", "provider": "p"}],
    }
    await client.patch(GARDEN, LOCAL, with_values({"spec": {}}, provided))
