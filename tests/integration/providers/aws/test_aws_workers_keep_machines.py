"""Machines on AWS that stay although something changes, and machines that must not stay."""

import base64
from typing import Final

import pytest

from pergola.api.kinds import MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    deletion_timestamp_of,
    finalizers_of,
    labels_of,
    map_at,
    name_of,
)
from pergola.testing.waiting import running, until
from tests.support.aws.worker_site import PATIENCE, WorkerSite
from tests.support.simulated_machines import complete, simulate_machines

ZONE: Final = "eu-west-1a"
UPDATED: Final = "machineDeploymentsLastUpdateTime"
AWS_KEYS: Final = {"accessKeyID": "test", "secretAccessKey": "test"}


@pytest.fixture
def site(worker_site: WorkerSite) -> WorkerSite:
    return worker_site


async def test_a_shoot_keeps_its_machines_on_another_seed(site: WorkerSite) -> None:
    pool = {**site.pool, "maximum": 6}
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator)):
        await site.until_reconciled()
        # As the cluster autoscaler does.
        grown = Key(site.namespace, f"{site.namespace}-{pool['name']}-z1")
        await site.client.patch(MACHINE_DEPLOYMENT, grown, {"spec": {"replicas": 2}})
        await until(site.client, MACHINE_DEPLOYMENT, grown, _has_two, patience=PATIENCE)
        instances, machines = await site.instances(), await _machines(site)
        assert len(instances) == len(machines) == 4, machines
    state = await site.leave_seed()
    assert await site.names(MACHINE) == []

    await site.enter_seed(state, pool)
    async with running(site.unit(actuator)):
        await site.until_controller_has(1)
        await site.controllers.start()
        await site.until_reconciled()

    assert await _machines(site) == machines
    assert await site.instances() == instances
    for machine in await site.client.list(MACHINE, site.namespace):
        assert finalizers_of(machine)


async def test_a_shoot_that_moves_while_it_falls_asleep_has_no_machines(site: WorkerSite) -> None:
    actuator = await site.create_worker()
    async with running(site.unit(actuator)):
        await site.until_reconciled()
    state = await site.leave_seed()
    assert len(await site.instances()) == 3

    site.shoot["spec"]["hibernation"] = {"enabled": True}
    await site.put()
    await site.enter_seed(state, site.pool)
    async with running(site.unit(actuator)):
        await site.until_controller_has(1)
        await site.controllers.start()
        await site.until_reconciled()

    assert await site.instances() == {}
    assert await site.names(MACHINE) == []
    await site.until_controller_has(0)


async def test_rotated_credentials_reach_machines_of_old_classes(site: WorkerSite) -> None:
    [pool] = site.pools({"zones": [ZONE], "minimum": 1, "maximum": 1})
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator)):
        first = (await site.until_reconciled())["status"][UPDATED]
        await site.controllers.stop()
        await site.change({**pool, "volume": {**pool["volume"], "encrypted": True}})
        await site.until(lambda worker: worker["status"][UPDATED] != first)
    assert len(await site.names(MACHINE_CLASS)) == 2

    await site.put_secret("rotated", AWS_KEYS)
    await site.edit({"spec": {"secretRef": {"name": "rotated"}}})
    old = Key(site.namespace, "cloudprovider")
    await site.client.patch(SECRET, old, {"data": dict.fromkeys(AWS_KEYS)})
    await site.delete()
    async with running(site.unit(actuator)):
        await site.controllers.start()
        await site.until_gone()

    assert await site.instances() == {}


async def test_changes_outside_the_hash_replace_no_machines(site: WorkerSite) -> None:
    [pool] = site.pools({"zones": [ZONE], "minimum": 1, "maximum": 1})
    config = {
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "WorkerConfig",
        "nodeTemplate": {"virtualCapacity": {"example.com/licence": "8"}},
    }
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator)):
        await site.until_reconciled()
        before = await site.uids()

        reference = pool["userDataSecretRef"]
        text = base64.b64encode(b"#!/bin/bash\ntrue\n").decode()
        key = Key(site.namespace, reference["name"])
        await site.client.patch(SECRET, key, {"data": {reference["key"]: text}})
        await site.change({**pool, "providerConfig": config})
        await site.until_reconciled()

    assert await site.uids() == before
    [machine_class] = await site.client.list(MACHINE_CLASS, site.namespace)
    assert machine_class["nodeTemplate"]["virtualCapacity"] == {"example.com/licence": "8"}
    secret = await site.client.get(SECRET, Key.of(machine_class))
    assert secret["data"] == {"userData": text}


async def test_a_changed_worker_does_not_await_machines_of_removed_pools(
    stopped_worker_site: WorkerSite,
) -> None:
    site = stopped_worker_site
    one, two = site.pools(
        *({"name": name, "zones": [ZONE], "minimum": 1, "maximum": 1} for name in ("one", "two"))
    )
    actuator = await site.create_worker(one, two)
    held = Key(site.namespace, f"{site.namespace}-two-z1")
    async with running(site.unit(actuator)):
        await site.until(lambda worker: "machineDeployments" in worker.get("status", {}))
        deployments = await site.client.list(MACHINE_DEPLOYMENT, site.namespace)
        await simulate_machines(site.client, deployments)
        await complete(site.client, deployments)
        await site.until_reconciled()
        await _set_finalizers(site, held, ["example.com/held"])

        await site.change(one)
        await until(site.client, MACHINE_DEPLOYMENT, held, _is_deleting)
        await site.change({**one, "maximum": 2})
        await site.until(lambda worker: worker["status"]["machineDeployments"][0]["maximum"] == 2)

    await _set_finalizers(site, held, None)


async def _set_finalizers(site: WorkerSite, key: Key, finalizers: list[str] | None) -> None:
    patch: JsonObject = {"metadata": {"finalizers": finalizers}}
    await site.client.patch(MACHINE_DEPLOYMENT, key, patch)


def _is_deleting(deployment: JsonObject) -> bool:
    return deletion_timestamp_of(deployment) is not None


async def _machines(site: WorkerSite) -> dict[str, tuple[str, str]]:
    """Return the instance and the node of each Machine."""
    return {
        name_of(each): (map_at(each, "spec").get("providerID", ""), labels_of(each).get("node", ""))
        for each in await site.client.list(MACHINE, site.namespace)
    }


def _has_two(deployment: JsonObject) -> bool:
    return map_at(deployment, "status").get("availableReplicas") == 2
