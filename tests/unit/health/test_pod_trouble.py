"""The reason why a pod is not ready, from its status alone."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.health.pod_trouble import Cause, pod_trouble
from pergola.why.health.advice import about_pod


def pod(*containers: JsonObject, init: tuple[JsonObject, ...] = (), **status: Any) -> JsonObject:
    conditions = [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]
    statuses = {"containerStatuses": [*containers], "initContainerStatuses": [*init]}
    return {
        "metadata": {"name": "web", "namespace": "shop"},
        "status": {"phase": "Pending", "conditions": conditions, **statuses, **status},
    }


def waiting(reason: str, message: str = "", **rest: Any) -> JsonObject:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"name": "app", "image": "app:1", "ready": False, "state": state, **rest}


READY: JsonObject = {"name": "side", "ready": True, "state": {"running": {}}}
CRASHED = waiting(
    "CrashLoopBackOff",
    restartCount=3,
    lastState={"terminated": {"exitCode": 2, "reason": "Error"}},
)
KILLED = waiting(
    "CrashLoopBackOff",
    lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
)
UNKNOWN: JsonObject = waiting(
    "CrashLoopBackOff",
    restartCount=1,
    lastState={
        "terminated": {"exitCode": 128, "reason": "StartError", "message": '"web": not found'}
    },
)
ENDED: JsonObject = {"name": "app", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
DONE: JsonObject = {"name": "setup", "state": {"terminated": {"exitCode": 0}}}
UNREADY: JsonObject = {"name": "app", "ready": False, "started": True, "state": {"running": {}}}
RESTARTED: JsonObject = {
    **UNREADY,
    "restartCount": 1,
    "lastState": {"terminated": {"exitCode": 137, "signal": 9, "reason": "Error"}},
}
UNSCHEDULED = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}


@pytest.mark.parametrize(
    ("it", "cause", "words"),
    [
        (pod(conditions=[UNSCHEDULED]), Cause.UNSCHEDULABLE, "0/1 nodes are available"),
        (pod(waiting("ErrImagePull", "not found")), Cause.IMAGE, "cannot pull image app:1"),
        (pod(waiting("CreateContainerConfigError", "no x")), Cause.CONFIG, "ConfigError: no x"),
        (pod(CRASHED), Cause.CRASH, '"app" crashes (exit code 2, restarted 3 times)'),
        (pod(KILLED), Cause.MEMORY, "OOMKilled"),
        (pod(UNKNOWN), Cause.COMMAND, 'StartError, restarted once): "web": not found'),
        (pod(ENDED), Cause.CRASH, '"app" ended (exit code 1)'),
        (pod(UNREADY), Cause.NOT_READY, 'container "app" runs but is not ready'),
        (pod(RESTARTED), Cause.NOT_READY, "its last run ended (signal 9, restarted once)"),
        (pod(waiting("ContainerCreating")), Cause.CREATING, "is being created"),
        (pod(), Cause.CREATING, "phase is Pending"),
        (pod(READY, init=(ENDED,)), Cause.CRASH, 'init container "app" ended'),
        (pod(READY, init=(DONE,)), Cause.GATE, "condition Ready is False"),
        (pod(phase="Failed", reason="Evicted", message="disk"), Cause.FAILED, "Evicted: disk"),
    ],
)
def test_the_problem_of_a_pod_has_a_kind_and_a_sentence(
    it: JsonObject, cause: Cause, words: str
) -> None:
    trouble = pod_trouble(it)
    assert trouble is not None
    assert trouble.cause is cause
    assert words in trouble.problem


def test_a_container_that_cannot_run_is_reported_before_one_that_is_not_ready() -> None:
    trouble = pod_trouble(pod({**UNREADY, "name": "first"}, CRASHED))
    assert trouble is not None
    assert trouble.container == "app"


def test_the_log_of_a_crashed_run_is_preferred() -> None:
    crashed, ended = pod_trouble(pod(CRASHED)), pod_trouble(pod(ENDED))
    assert crashed is not None
    assert (crashed.has_log, crashed.has_previous) == (True, True)
    assert ended is not None
    assert (ended.has_log, ended.has_previous) == (True, False)


def test_a_command_that_cannot_be_started_has_no_log() -> None:
    trouble = pod_trouble(pod(UNKNOWN))
    assert trouble is not None
    assert (trouble.has_log, trouble.has_previous) == (False, False)
    assert about_pod(pod(UNKNOWN), trouble).startswith('correct the command of container "app"')


def test_a_ready_or_completed_pod_has_no_problem() -> None:
    ready = {"type": "Ready", "status": "True"}
    assert pod_trouble(pod(READY, phase="Running", conditions=[ready])) is None
    assert pod_trouble(pod(DONE, phase="Succeeded")) is None


def test_the_deletion_of_a_pod_is_reported() -> None:
    deleted = pod(READY)
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    trouble = pod_trouble(deleted)
    assert trouble is not None
    assert trouble.cause is Cause.TERMINATING
