"""The pure parts of explanations of machines: words of AWS, roll-outs, and what to do."""

from typing import Any, Final

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.extensions.workers.live import Live
from pergola.why.answer import Topic
from pergola.why.finalizers import owner_of
from pergola.why.workers.deployment import troubles
from pergola.why.workers.machine import state_of
from pergola.why.workers.words import failures, said

NAMESPACE: Final = "shoot--p--s"
NAME: Final = f"{NAMESPACE}-pool-z1"
CAPACITY: Final = (
    "machine codes error: code = [ResourceExhausted] message = [InsufficientInstanceCapacity: "
    "We currently do not have sufficient m5.large capacity]"
)


def deployment(new: str = "new", **status: Any) -> JsonObject:
    return {
        "kind": "MachineDeployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {"replicas": 2, "template": {"spec": {"class": {"name": f"{NAME}-{new}"}}}},
        "status": {"readyReplicas": 2, "updatedReplicas": 2, **status},
    }


def machine_set(suffix: str, replicas: int) -> JsonObject:
    return {
        "metadata": {"name": f"{NAME}-{suffix}", "labels": {"name": NAME}},
        "spec": {"template": {"spec": {"class": {"name": f"{NAME}-{suffix}"}}}},
        "status": {"replicas": replicas},
    }


def machine(name: str, phase: str, *, of: str = "new", **last: str) -> JsonObject:
    owner = {"kind": "MachineSet", "name": f"{NAME}-{of}"}
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "status": {"currentStatus": {"phase": phase} if phase else {}, "lastOperation": last},
    }


@pytest.mark.parametrize(
    ("text", "code", "advice"),
    [
        (CAPACITY, "ERR_INFRA_RESOURCES_DEPLETED", "use another zone or machine type"),
        ("VcpuLimitExceeded: 32 vCPUs", "ERR_INFRA_QUOTA_EXCEEDED", "raise the quota"),
        ("AccessDenied: ec2:RunInstances", "ERR_INFRA_UNAUTHORIZED", "permissions"),
    ],
)
def test_the_class_of_an_error_of_aws_decides_what_to_do(text: str, code: str, advice: str) -> None:
    found = said(text)

    assert found.text == f"{text} ({code})"
    assert advice in found.advice


def test_unknown_words_are_passed_on_without_advice() -> None:
    found = said("something\n new")

    assert (found.text, found.advice) == ("something new", "")


def test_machines_that_failed_for_one_reason_are_named_together() -> None:
    failed = [{"name": name, "lastOperation": {"description": CAPACITY}} for name in ("a", "b")]

    (found,) = failures(deployment(failedMachines=[*failed]))

    assert found.subject == f"Machine {NAMESPACE}/a, {NAMESPACE}/b"
    assert found.topic is Topic.PROBLEM


def test_nothing_is_said_about_machines_that_all_run() -> None:
    live = Live({NAME: deployment()}, [machine_set("new", 2), machine_set("old", 0)])

    assert [*troubles(NAME, live)] == []


def test_a_roll_out_names_both_classes() -> None:
    sets = [machine_set("new", 1), machine_set("old", 1)]
    live = Live({NAME: deployment(updatedReplicas=1)}, sets)

    (found,) = troubles(NAME, live)

    assert found.topic is Topic.WAITS
    assert (
        found.text == f"a roll-out: class {NAME}-new has 1 machine(s), and replaces 1 of {NAME}-old"
    )


def in_place(orchestration: str) -> Live:
    """Return two machines that are to be updated in place; the update of one has begun."""
    updated = deployment(updatedReplicas=0)
    strategy = {"orchestrationType": orchestration}
    updated["spec"]["strategy"] = {"type": "InPlaceUpdate", "inPlaceUpdate": strategy}
    begun, waiting = machine("a", "Running", of="old"), machine("b", "Running", of="old")
    begun["status"]["conditions"] = [{"type": "InPlaceUpdate", "reason": "SelectedForUpdate"}]
    waiting["status"]["conditions"] = [{"type": "InPlaceUpdate", "reason": "CandidateForUpdate"}]
    waiting["metadata"]["labels"] = {"node": "node-b"}
    sets = [machine_set("new", 0), machine_set("old", 2)]
    return Live({NAME: updated}, sets, [begun, waiting])


def test_machines_that_are_updated_in_place_are_named() -> None:
    begun, waiting = troubles(NAME, in_place("Auto"))

    assert begun.text == "an update in place of a"
    assert (waiting.text, waiting.advice) == ("1 machine(s) wait for their update in place", "")


def test_of_many_machines_that_are_updated_in_place_three_are_named() -> None:
    live = in_place("Auto")
    begun, waiting = live.machines
    several = [{**begun, "metadata": {**begun["metadata"], "name": name}} for name in "cabde"]

    statement, _ = troubles(NAME, Live(live.deployments, live.sets, [*several, waiting]))

    assert statement.text == "an update in place of a, b, c and 2 more"


def test_users_learn_how_to_start_updates_in_place() -> None:
    _, waiting = troubles(NAME, in_place("Manual"))

    assert waiting.topic is Topic.WAITS
    assert waiting.text == "1 machine(s) wait until their update in place is started"
    assert waiting.advice.endswith(
        "kubectl label node node-b node.machine.sapcloud.io/selected-for-update=true"
    )


def test_a_machine_without_a_node_has_no_command() -> None:
    live = in_place("Manual")
    for machine in live.machines:
        machine["metadata"].pop("labels", None)

    _, waiting = troubles(NAME, live)

    assert waiting.text == "1 machine(s) wait until their update in place is started"
    assert waiting.advice == ""


def test_machines_that_do_not_run_are_listed_with_their_last_words() -> None:
    machines = [machine("a", "Pending", description="Creating machine on cloud provider")]
    live = Live({NAME: deployment(readyReplicas=1)}, [machine_set("new", 2)], machines)

    count, waiting = troubles(NAME, live)

    assert count.text == "1 of 2 machine(s) run"
    assert waiting.subject == f"Machine {NAMESPACE}/a"
    assert waiting.text == "phase Pending: Creating machine on cloud provider"


def test_a_deployment_that_its_controller_ignores_is_stuck() -> None:
    ignored = deployment()
    ignored["metadata"] |= {
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "finalizers": ["machine.sapcloud.io/machine-controller-manager"],
    }

    (found,) = troubles(NAME, Live({NAME: ignored}))

    assert "has made no MachineSet" in found.text
    assert f"kubectl delete pod -n {NAMESPACE}" in found.advice


@pytest.mark.parametrize(
    ("phase", "state", "topic"),
    [
        ("", "", Topic.WAITS),
        ("Pending", "Processing", Topic.WAITS),
        ("Pending", "Failed", Topic.PROBLEM),
        ("CrashLoopBackOff", "Failed", Topic.PROBLEM),
        ("Unknown", "Processing", Topic.PROBLEM),
    ],
)
def test_a_machine_waits_until_something_failed(phase: str, state: str, topic: Topic) -> None:
    assert state_of(machine("a", phase, state=state)).topic is topic


def test_finalizers_of_machines_have_an_owner() -> None:
    gvk = GroupVersionKind("machine.sapcloud.io", "v1alpha1", "Machine")

    found = owner_of("machine.sapcloud.io/machine-controller-manager", gvk)

    assert found.name == "machine-controller-manager"
