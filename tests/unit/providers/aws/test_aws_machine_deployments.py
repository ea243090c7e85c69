"""MachineDeployments on AWS are those of the original, whatever exists: spec 31 §4.3."""

from typing import Final

import pytest

from conformance.subjects.aws_machines import plan_of
from pergola.api.objects import JsonObject, maps_at, name_of
from pergola.extensions.workers.deployments import (
    machine_deployment,
    replicas_of,
    scales,
    wakes_up,
)
from pergola.extensions.workers.desired import DesiredMachines, desired_machines
from pergola.extensions.workers.pool_hash import in_place_hash
from pergola.extensions.workers.restoring import machine_states
from pergola.providers.aws.workers.actuator import AwsWorker
from pergola.providers.aws.workers.machines import machines
from tests.support.aws.machines import machine_fact, machine_facts

DUPLICATE: Final = "raw providerConfig: a field twice, Kubernetes 1.33"
MADE: Final = [fact for fact in machine_facts() if "machineDeployments" in fact["output"]]


def desired(question: JsonObject) -> list[DesiredMachines]:
    plan = plan_of(question)
    user_data = {pool.name: b"data" for pool in plan.pools}
    return desired_machines(plan, machines(plan), AwsWorker.provider, user_data)


def deployments(question: JsonObject) -> list[JsonObject]:
    """Return the MachineDeployments that a run would leave."""
    plan = plan_of(question)
    live = [each for each in question.get("existing", []) if each["kind"] == "MachineDeployment"]
    by_name = {name_of(each): each for each in live}
    states = machine_states(question["worker"]) if question.get("operation") == "restore" else {}
    is_hibernated = plan.shoot.hibernation_enabled
    made = []
    for each in desired(question):
        state = states.get(each.name, {})
        is_restored = bool(list(maps_at(state, "machineSets")))
        replicas = replicas_of(
            each,
            by_name.get(each.name),
            is_hibernated=is_hibernated,
            scales=scales([pool.raw for pool in plan.pools]),
            wakes_up=not is_hibernated and wakes_up(live),
            restored=int(state["replicas"]) if is_restored else None,
        )
        made.append(machine_deployment(each, question["worker"], by_name.get(each.name), replicas))
    return made


def without_type(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}


@pytest.mark.parametrize("fact", MADE, ids=lambda fact: fact["case"])
def test_machine_deployments_are_those_of_the_original(fact: JsonObject) -> None:
    found = [without_type(each) for each in deployments(fact["input"])]

    expected = [without_type(each) for each in fact["output"]["machineDeployments"]]
    assert sorted(found, key=name_of) == sorted(expected, key=name_of)


@pytest.mark.parametrize("fact", MADE, ids=lambda fact: fact["case"])
def test_the_autoscaler_is_told_of_the_same_deployments(fact: JsonObject) -> None:
    status = fact["output"]["workerStatus"]

    assert [each.status for each in desired(fact["input"])] == status.get("machineDeployments", [])


def test_hashes_of_pools_that_are_updated_in_place_are_those_of_the_original() -> None:
    compared = 0
    for fact in MADE:
        expected = fact["output"]["workerStatus"].get("inPlaceUpdates", {})
        plan = plan_of(fact["input"])
        pools = [pool for pool in plan.pools if pool.is_in_place]
        found = {pool.name: in_place_hash(pool, plan.shoot.raw) for pool in pools}
        assert found == expected.get("workerPoolToHashMap", {}), fact["case"]
        compared += len(found)
    assert compared > 5


def test_all_facts_are_compared() -> None:
    assert len(MADE) > 130
    assert machine_fact("restore: two of three deployments have a state") in MADE
