"""Waiting until the machines of a Worker run: spec 31 §5 steps 8 and 9."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.extensions.workers.desired import DesiredMachines
from pergola.extensions.workers.live import Live
from pergola.extensions.workers.rollout import failed_machines, is_updated, missing, stuck

NAME: Final = "shoot-pool-z1"
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
FINALIZER: Final = "machine.sapcloud.io/machine-controller-manager"
AVAILABLE: Final = {"type": "Available", "status": "True"}
RUNNING: Final[dict[str, Any]] = {
    "observedGeneration": 1,
    "replicas": 2,
    "updatedReplicas": 2,
    "availableReplicas": 2,
    "conditions": [AVAILABLE],
}


def wanted(*, is_manual: bool = False) -> DesiredMachines:
    return DesiredMachines(
        name=NAME,
        class_name=f"{NAME}-new",
        pool="pool",
        minimum=2,
        maximum=2,
        priority=None,
        preserved=None,
        is_manual=is_manual,
        machine_class={},
        secret={},
        options={},
        template={},
        strategy={},
    )


def deployment(class_name: str = f"{NAME}-new", **status: Any) -> JsonObject:
    return {
        "metadata": {"name": NAME, "generation": 1, "finalizers": [FINALIZER]},
        "spec": {"replicas": 2, "template": {"spec": {"class": {"name": class_name}}}},
        "status": {**RUNNING, **status},
    }


def machine_set(suffix: str, replicas: int = 0, *, owned: bool = True) -> JsonObject:
    owner = {"kind": "MachineDeployment", "name": NAME}
    metadata: JsonObject = {"name": f"{NAME}-{suffix}", "labels": {"name": NAME}}
    if owned:
        metadata["ownerReferences"] = [owner]
    return {
        "metadata": metadata,
        "spec": {"template": {"spec": {"class": {"name": f"{NAME}-{suffix}"}}}},
        "status": {"replicas": replicas},
    }


def machine(of: str, reason: str) -> JsonObject:
    return {
        "metadata": {"ownerReferences": [{"kind": "MachineSet", "name": f"{NAME}-{of}"}]},
        "status": {"conditions": [{"type": "InPlaceUpdate", "reason": reason}]},
    }


def live(*sets: JsonObject, machines: tuple[JsonObject, ...] = (), **status: Any) -> Live:
    return Live({NAME: deployment(**status)}, sets, machines)


@pytest.mark.parametrize("owned", [True, False])
def test_nothing_is_missing_when_all_machines_run(owned: bool) -> None:
    found = live(machine_set("new", owned=owned))

    assert missing([wanted()], found, is_hibernated=False) == ""


@pytest.mark.parametrize(
    ("sets", "status", "text"),
    [
        (["old"], {}, "has not created the machine sets of shoot-pool-z1 yet"),
        (["new"], {"observedGeneration": 0}, "has not been observed since its last change"),
        (["new"], {"conditions": []}, "has no condition Available"),
        (["new"], {"updatedReplicas": 1}, "1 old machine(s) are being drained and terminated"),
        (
            ["new"],
            {"availableReplicas": 1, "unavailableReplicas": 1},
            "1 of 2 machine(s) are available, 2 updated, 1 pending",
        ),
        (
            ["new"],
            {
                "conditions": [
                    {"type": "Available", "status": "False", "message": "it lacks two machines"}
                ]
            },
            "shoot-pool-z1 has Available=False (it lacks two machines)",
        ),
        (
            ["new"],
            {
                "conditions": [
                    AVAILABLE,
                    {"type": "Frozen", "status": "True", "reason": "TooMany"},
                ]
            },
            "shoot-pool-z1 has Frozen=True (TooMany)",
        ),
    ],
)
def test_a_sentence_says_what_is_missing(
    sets: list[str], status: dict[str, Any], text: str
) -> None:
    found = live(*map(machine_set, sets), **status)

    assert text in missing([wanted()], found, is_hibernated=False)


def test_failed_machines_that_are_preserved_are_not_awaited() -> None:
    status: dict[str, Any] = {
        "availableReplicas": 1,
        "unavailableReplicas": 1,
        "preservedFailedReplicas": 1,
    }

    assert missing([wanted()], live(machine_set("new"), **status), is_hibernated=False) == ""


def test_a_hibernated_shoot_has_no_machines() -> None:
    awake = "2 machine(s) are not hibernated yet"

    assert missing([wanted()], live(), is_hibernated=True) == awake
    assert missing([wanted()], live(replicas=0), is_hibernated=True) == ""


def test_machines_of_which_the_status_does_not_know_yet_are_not_hibernated() -> None:
    labelled = {"metadata": {"labels": {"name": NAME}}}
    other = {"metadata": {"labels": {"name": "other"}}}
    awake = "1 machine(s) are not hibernated yet"
    set_of_one = {**machine_set("new"), "spec": {"replicas": 1}}

    exists = live(machine_set("new"), machines=(labelled,), replicas=0)
    assert missing([wanted()], exists, is_hibernated=True) == awake
    assert missing([wanted()], live(set_of_one, replicas=0), is_hibernated=True) == awake
    assert missing([wanted()], live(machines=(other,), replicas=0), is_hibernated=True) == ""


def test_a_broken_deployment_that_is_removed_is_not_awaited() -> None:
    broken = deployment(
        failedMachines=[failed("a", "no capacity")], unavailableReplicas=1, conditions=[]
    )
    found = Live({NAME: deployment(), "removed": broken}, [machine_set("new")])

    assert missing([wanted()], found, is_hibernated=False) == ""
    assert failed_machines(found, [NAME]) == ""


def test_machines_are_not_awaited_until_users_start_their_updates() -> None:
    pool = wanted(is_manual=True)
    status: dict[str, Any] = {"updatedReplicas": 1}
    sets = (machine_set("new", 1), machine_set("old", 1))
    updated = machine("new", "UpdateSuccessful")
    candidate = live(*sets, machines=(updated, machine("old", "CandidateForUpdate")), **status)
    selected = live(*sets, machines=(updated, machine("old", "SelectedForUpdate")), **status)

    assert missing([pool], candidate, is_hibernated=False) == ""
    assert missing([pool], selected, is_hibernated=False) == "1 old machine(s) are being updated"
    assert not is_updated("pool", [pool], candidate)
    assert is_updated("pool", [pool], live(*sets, machines=(updated, updated)))


@pytest.mark.parametrize("of_old_set", [0, 1])
@pytest.mark.parametrize("of_all", [1, 2])
def test_an_update_is_awaited_until_all_numbers_know_of_it(of_old_set: int, of_all: int) -> None:
    """The last machine has its new owner, but the numbers follow one after the other."""
    pool = wanted(is_manual=True)
    machines = (machine("new", "UpdateSuccessful"),) * 2
    sets = (machine_set("new", 1), machine_set("old", of_old_set))
    late = live(*sets, machines=machines, updatedReplicas=1, replicas=of_all)
    done = live(*sets, machines=machines, updatedReplicas=2, replicas=2)

    assert missing([pool], late, is_hibernated=False) != ""
    assert missing([pool], done, is_hibernated=False) == ""
    assert is_updated("pool", [pool], done)


def failed(name: str, text: str | None, operation: str = "Create") -> JsonObject:
    return {"name": name, "lastOperation": {"description": text, "type": operation}}


def test_failures_are_grouped_by_their_reason() -> None:
    machines = [failed("a", "no capacity"), failed("b", "no capacity"), failed("c", None)]

    assert failed_machines(live(failedMachines=machines), [NAME]) == (
        'machine(s) failed: "a", "b": no capacity; "c": no reason given'
    )
    assert failed_machines(live(failedMachines=machines), [NAME], operation="Delete") == ""
    assert failed_machines(live(failedMachines=machines), ["other"]) == ""


def test_a_deployment_without_a_machine_set_is_stuck_after_two_minutes() -> None:
    def created(age: timedelta, *sets: JsonObject) -> Live:
        obj = deployment()
        obj["metadata"]["creationTimestamp"] = (NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Live({NAME: obj}, sets)

    old, new = timedelta(minutes=3), timedelta(minutes=1)

    assert stuck(created(old), NOW) == NAME
    assert stuck(created(old, machine_set("old")), NOW) == NAME
    assert stuck(created(old, machine_set("new")), NOW) == ""
    assert stuck(created(new), NOW) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["replicas", "updatedReplicas", "observedGeneration", "conditions", "failedMachines"]
)


@given(st.dictionaries(FIELDS, JSON), st.booleans(), st.booleans())
def test_any_status_leads_to_a_sentence(
    status: dict[str, Any], is_hibernated: bool, is_manual: bool
) -> None:
    found = live(machine_set("new"), **status)

    assert isinstance(
        missing([wanted(is_manual=is_manual)], found, is_hibernated=is_hibernated), str
    )
    assert isinstance(failed_machines(found, [NAME]), str)
