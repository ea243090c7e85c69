"""Machines on AWS that are updated in place, by the real machine-controller-manager.

The agents of nodes, which install the update, are simulated.
"""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from pergola.api.kinds import MACHINE, MACHINE_CLASS, MACHINE_SET, NODE
from pergola.api.objects import JsonObject, Key, labels_of, map_at, name_of, uid_of
from pergola.extensions.workers.live import KINDS, class_of, read_live
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import running, until
from pergola.why.workers.deployment import troubles
from pergola.why.workers.observed import NODE_LABEL, SELECTED
from tests.support.aws.worker_site import PATIENCE, WorkerSite
from tests.support.node_agents import node_agents

ZONE: Final = "eu-west-1a"
NEWER: Final = "1.99.0"


@pytest.fixture
async def site(worker_site: WorkerSite) -> AsyncIterator[WorkerSite]:
    async with node_agents(worker_site.client):
        yield worker_site


def in_place(site: WorkerSite, strategy: str) -> JsonObject:
    """Return a pool of two machines."""
    size = {"minimum": 2, "maximum": 2, "maxSurge": 0, "maxUnavailable": 1}
    [pool] = site.pools({"zones": [ZONE], "updateStrategy": strategy, **size})
    return pool


async def machines(site: WorkerSite) -> dict[str, JsonObject]:
    """Return the machines by their uids."""
    return {uid_of(each): each for each in await site.client.list(MACHINE, site.namespace)}


async def sets(site: WorkerSite) -> list[str]:
    """Return the class of the MachineSet of each machine.

    A machine that was updated in place keeps the class that it was made with.
    """
    found = {name_of(each): each for each in await site.client.list(MACHINE_SET, site.namespace)}
    owners = (each["metadata"]["ownerReferences"][0] for each in (await machines(site)).values())
    return sorted(class_of(found[owner["name"]]) for owner in owners)


def hashes(worker: JsonObject) -> JsonObject:
    return map_at(worker, "status", "inPlaceUpdates", "workerPoolToHashMap")


async def test_machines_are_updated_in_place_one_after_the_other(site: WorkerSite) -> None:
    pool = in_place(site, "AutoInPlaceUpdate")
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator)):
        before = hashes(await site.until_reconciled())
        kept, instances = await machines(site), await site.instances()
        [old] = await site.names(MACHINE_CLASS)

        await site.change({**pool, "kubernetesVersion": NEWER})
        after = hashes(await site.until_reconciled())

        assert after != before
        assert (await machines(site)).keys() == kept.keys()
        assert await site.instances() == instances
        [new] = {*await site.names(MACHINE_CLASS)} - {old}
        assert await sets(site) == [new, new]
        await complete(site)

        await site.delete()
        await site.until_gone()
    assert await site.instances() == {}
    assert await site.names(MACHINE_CLASS) == []


async def test_users_choose_when_each_machine_is_updated_in_place(site: WorkerSite) -> None:
    pool = in_place(site, "ManualInPlaceUpdate")
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator), *actuator.companions(site.client, Metrics())):
        before = hashes(await site.until_reconciled())
        kept, instances = await machines(site), await site.instances()
        [old] = await site.names(MACHINE_CLASS)

        await site.change({**pool, "kubernetesVersion": NEWER})
        assert hashes(await site.until_reconciled()) == before
        assert await sets(site) == [old, old]
        assert await advised(site) in {labels_of(each)[NODE_LABEL] for each in kept.values()}
        [new] = {*await site.names(MACHINE_CLASS)} - {old}

        first, second = kept.values()
        await select(site, first)
        assert hashes(await site.until_reconciled()) == before
        assert await sets(site) == sorted([old, new])

        await select(site, second)
        await site.until(lambda worker: hashes(worker) != before, patience=PATIENCE)

    assert (await machines(site)).keys() == kept.keys()
    assert await site.instances() == instances
    assert await sets(site) == [new, new]
    await complete(site)


async def test_machines_that_were_updated_in_place_have_a_class_on_another_seed(
    site: WorkerSite,
) -> None:
    pool = in_place(site, "AutoInPlaceUpdate")
    newer = {**pool, "kubernetesVersion": NEWER}
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator)):
        await site.until_reconciled()
        await site.change(newer)
        await site.until_reconciled()
        instances = await site.instances()
    state = await site.leave_seed()

    await site.enter_seed(state, newer)
    async with running(site.unit(actuator)):
        await site.until_controller_has(1)
        await site.controllers.start()
        await site.until_reconciled()
        assert await site.instances() == instances
        await complete(site)

        await site.delete()
        await site.until_gone()
    assert await site.instances() == {}


async def test_an_update_that_fails_is_reported_in_the_words_of_the_node(
    worker_site: WorkerSite,
) -> None:
    site, pool = worker_site, in_place(worker_site, "AutoInPlaceUpdate")
    actuator = await site.create_worker(pool)
    async with node_agents(site.client, failure="no space left"), running(site.unit(actuator)):
        await site.until_reconciled()
        instances = await site.instances()
        await site.change({**pool, "kubernetesVersion": NEWER})
        failed = await site.until(lambda worker: bool(_error(worker)), patience=PATIENCE)

    assert "no space left" in _error(failed)
    assert await site.instances() == instances


async def advised(site: WorkerSite) -> str:
    """Return the node whose update `pergola why` advises to start, with which label."""
    live = await read_live(site.client, site.namespace, KINDS)
    [name] = live.deployments
    [waiting] = troubles(name, live)
    command = waiting.advice.partition("kubectl label node ")[2]
    node, label = command.split()
    assert label == f"{SELECTED}=true"
    return node


async def complete(site: WorkerSite) -> None:
    """Check that the class of each machine exists."""
    named = {class_of(each) for each in (await machines(site)).values()}
    assert named <= {*await site.names(MACHINE_CLASS)}


async def select(site: WorkerSite, machine: JsonObject) -> None:
    """Start the update of a machine, and wait until it is done."""
    node = Key("", labels_of(machine)[NODE_LABEL])
    await site.client.patch(NODE, node, {"metadata": {"labels": {SELECTED: "true"}}})
    await until(
        site.client,
        MACHINE,
        Key.of(machine),
        lambda each: _owner(each) != _owner(machine),
        patience=PATIENCE,
    )


def _error(worker: JsonObject) -> str:
    return str(map_at(worker, "status", "lastError").get("description") or "")


def _owner(machine: JsonObject) -> str:
    return str(machine["metadata"]["ownerReferences"][0]["name"])
