"""The states of a Garden's tasks, derived from its status and live objects."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key
from pergola.health.since import since
from pergola.operator.reconcile.picture.operators import operator_problem
from pergola.operator.reconcile.picture.picture import Operation, Picture, State, Task, Wait
from pergola.operator.reconcile.picture.reported import Reported, running
from pergola.operator.reconcile.picture.states import states
from pergola.operator.reconcile.picture.steps import Step
from pergola.operator.reconcile.picture.taking import picture_of
from pergola.operator.reconcile.picture.times import Times
from pergola.operator.run.readiness import Awaited

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
THING = GroupVersionKind("", "v1", "Thing")


def unready(obj: JsonObject | None) -> str | None:
    return "it does not exist" if obj is None else obj.get("problem")


def awaiting(*names: str) -> tuple[Awaited, ...]:
    return tuple(Awaited(Identity(THING, Key("garden", name)), unready) for name in names)


STEPS = [
    Step(name="Deploying a", flow="Setup", after=(), awaited=awaiting("a")),
    Step(name="Deploying b", flow="Setup", after=(), skipped="b is off"),
    Step(name="Waiting for a", flow="Setup", after=("Deploying a",), awaited=awaiting("a")),
    Step(name="Deploying c", flow="Main", after=("Waiting for a", "Deploying b")),
    Step(name="Deploying d", flow="Main", after=("Waiting for a",), awaited=awaiting("d")),
    Step(name="Deploying e", flow="Main", after=("Deploying c", "Deploying d")),
]


def found(
    operation: Operation, objects: dict[str, JsonObject], failures: dict[str, str] | None = None
) -> dict[str, Task]:
    tasks = states(STEPS, operation, failures or {}, lambda it: objects.get(it.key.name))
    return {task.name.rpartition(" ")[0][:1] + task.name[-1]: task for task in tasks}


def words(tasks: dict[str, Task]) -> dict[str, str]:
    return {name: task.state.value for name, task in tasks.items()}


def processing(description: str) -> Operation:
    return Operation("Reconcile", "Processing", 10, description)


# Reports of the operator


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("", {}),
        ("Starting Garden reconciliation", {}),
        ("Deploying X", {"Deploying X": ("", "")}),
        ("Deploying X for Y", {"Deploying X for Y": ("", "")}),
        (
            "Deploying X (Pod garden/x: it does not exist, and 2 more), Deploying X for Y",
            {"Deploying X": ("Pod garden/x", "it does not exist"), "Deploying X for Y": ("", "")},
        ),
        (
            "Deploying X (Pod garden/x: a, b (c), d), Waiting, then Z",
            {"Deploying X": ("Pod garden/x", "a, b (c), d"), "Waiting, then Z": ("", "")},
        ),
        ("Deploying Xyz", {}),
    ],
)
def test_running_tasks_are_found_in_the_description(
    description: str, expected: dict[str, tuple[str, str]]
) -> None:
    names = ["Deploying X", "Deploying X for Y", "Waiting, then Z"]
    assert running(description, names) == {k: Reported(*v) for k, v in expected.items()}


# States


def test_before_the_first_task_nothing_has_started() -> None:
    tasks = found(processing("Reconciliation of Garden cluster initialized."), {})
    assert words(tasks) == {
        "Da": "pending",
        "Db": "skipped",
        "Wa": "pending",
        "Dc": "pending",
        "Dd": "pending",
        "De": "pending",
    }
    assert tasks["Db"].why == "b is off"


def test_a_task_runs_if_its_objects_are_not_ready_and_the_tasks_before_it_are_done() -> None:
    tasks = found(processing("Starting Setup"), {"a": {"problem": "it crashes"}})
    assert words(tasks)["Da"] == "running"
    [identity] = tasks["Da"].objects
    assert tasks["Da"].waits == (Wait("Thing garden/a", "it crashes", identity=identity),)
    assert words(tasks)["Wa"] == "pending"
    assert tasks["Wa"].after == ("Deploying a",)


def test_tasks_before_a_reported_one_are_done_and_those_after_it_are_pending() -> None:
    tasks = found(processing("Deploying d (Thing garden/d: slow)"), {"d": {}})
    assert words(tasks) == {
        "Da": "done",
        "Db": "skipped",
        "Wa": "done",
        "Dc": "done",
        "Dd": "running",
        "De": "pending",
    }
    assert tasks["Dd"].waits == (Wait("Thing garden/d", "slow"),)


def test_live_objects_override_an_older_report() -> None:
    tasks = found(processing("Deploying d (Thing garden/d: slow)"), {"d": {"problem": "new"}})
    assert [wait.problem for wait in tasks["Dd"].waits] == ["new"]


def test_a_flow_that_begins_ends_the_one_before_it() -> None:
    tasks = found(processing("Starting Main"), {})
    assert [words(tasks)[name] for name in ("Da", "Wa", "Dd")] == ["done", "done", "running"]


def test_a_failed_task_has_a_reason_and_its_dependants_are_pending() -> None:
    operation = Operation("Reconcile", "Error", 10, "task failed")
    tasks = found(operation, {"a": {}}, {"Deploying d": "it is broken"})
    assert tasks["Dd"].why == "it is broken"
    assert words(tasks) == {
        "Da": "done",
        "Db": "skipped",
        "Wa": "done",
        "Dc": "done",
        "Dd": "failed",
        "De": "pending",
    }


def test_after_a_failure_before_the_first_task_absent_objects_are_pending() -> None:
    operation = Operation("Reconcile", "Error", 0, "a reference is missing")
    assert words(found(operation, {}))["Da"] == "pending"
    assert words(found(operation, {"a": {"problem": "x"}}))["Da"] == "unhealthy"


def test_after_a_success_tasks_with_unready_objects_are_unhealthy() -> None:
    operation = Operation("Reconcile", "Succeeded", 100, "done")
    tasks = found(operation, {"a": {}, "d": {"problem": "it crashes"}})
    assert words(tasks)["Dd"] == "unhealthy"
    assert words(tasks)["De"] == "done"


# Start times


def test_a_problem_lasts_since_the_last_transition_of_its_condition() -> None:
    obj: Any = {
        "metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"},
        "status": {
            "conditions": [
                {"type": "Applied", "lastTransitionTime": "2026-01-01T11:00:00Z"},
                {"type": "Healthy", "lastTransitionTime": "2026-01-01T11:30:00Z"},
            ]
        },
    }
    assert since(obj, "condition Applied is False (X)") == NOW.replace(hour=11)
    assert since(obj, "it is not ready") == NOW.replace(hour=11, minute=30)
    del obj["status"]
    assert since(obj, "it is not ready") == NOW.replace(hour=10)
    obj["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    assert since(obj, "it still exists") == NOW.replace(hour=11, minute=59)


# The operation


def garden(**status: Any) -> JsonObject:
    return {"metadata": {"name": "local", "generation": 2}, "status": status}


def picture(it: JsonObject) -> Picture:
    return picture_of(it, STEPS, lambda _: {}, NOW)


def test_an_operation_is_over_once_it_ended_for_the_current_generation() -> None:
    last = {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "x"}
    assert picture(garden(lastOperation=last, observedGeneration=2)).is_over
    assert not picture(garden(lastOperation=last, observedGeneration=1)).is_over
    running = {**last, "state": "Processing"}
    assert not picture(garden(lastOperation=running, observedGeneration=2)).is_over


def test_a_pending_operation_is_reported_until_it_begins() -> None:
    waiting = picture(garden())
    assert not waiting.is_over
    assert "check that it runs" in waiting.note
    last = {"type": "Reconcile", "state": "Succeeded"}
    deleted = garden(lastOperation=last, observedGeneration=2)
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    assert not picture(deleted).is_over
    requested = garden(lastOperation=last, observedGeneration=2)
    requested["metadata"]["annotations"] = {"gardener.cloud/operation": "reconcile"}
    assert not picture(requested).is_over


def test_nothing_is_awaited_from_an_ignored_garden() -> None:
    ignored = garden()
    ignored["metadata"]["annotations"] = {"operator.gardener.cloud/ignore": "true"}
    assert picture(ignored).is_over
    assert "operator.gardener.cloud/ignore" in picture(ignored).note


def running_task(*waits: Wait) -> Picture:
    task = Task(name="t", flow="f", state=State.RUNNING, waits=waits)
    return Picture(garden="g", at=NOW, tasks=(task,))


def test_a_task_seen_first_has_run_at_least_since_its_oldest_wait() -> None:
    before = NOW.replace(hour=10)
    first = Times().added_to(running_task(Wait("a", "b", NOW), Wait("c", "d", before)))
    assert first.tasks[0].since == before


def test_a_task_that_starts_later_has_run_since_it_was_first_seen() -> None:
    times = Times()
    times.added_to(Picture(garden="g", at=NOW))
    began = times.added_to(replace(running_task(Wait("a", "b", NOW)), at=NOW.replace(hour=13)))
    later = times.added_to(replace(running_task(Wait("a", "b", NOW)), at=NOW.replace(hour=14)))
    assert began.tasks[0].since == later.tasks[0].since == NOW.replace(hour=13)


def test_an_absent_object_is_awaited_since_it_was_first_missed() -> None:
    times, picture = Times(), running_task(Wait("a", "it does not exist"))
    assert times.added_to(picture).tasks[0].waits[0].since is None
    later = times.added_to(replace(picture, at=NOW.replace(hour=13)))
    assert later.tasks[0].waits[0].since == NOW


# The operator


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"holderIdentity": "a", "renewTime": "2026-01-01T11:59:30Z"}, ""),
        (
            {"holderIdentity": "a", "renewTime": "2026-01-01T11:50:00Z"},
            "operator a has not renewed",
        ),
        ({"holderIdentity": ""}, "no operator holds"),
    ],
)
def test_an_operator_that_does_not_renew_its_lease_is_not_running(
    spec: JsonObject, words: str
) -> None:
    problem = operator_problem({"spec": spec}, NOW)
    assert bool(problem) == bool(words)
    assert words in problem


def test_without_leader_election_the_operator_is_unknown() -> None:
    assert operator_problem(None, NOW) == ""
