"""The requirements of `pergola garden wait` (spec 21 §12.4, §12.5)."""

import copy
from typing import Any, Final

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.cli.garden.wait import DELETE, READY, problems_of

HEALTHY: Final = "VirtualComponentsHealthy"
GARDEN: Final[JsonObject] = {
    "metadata": {"name": "local", "generation": 3},
    "status": {
        "observedGeneration": 3,
        "lastOperation": {
            "type": "Reconcile",
            "state": "Succeeded",
            "progress": 100,
            "description": "done",
        },
        "conditions": [{"type": kind, "status": "True"} for kind in CARE_CONDITIONS],
    },
}


def garden(**status: Any) -> JsonObject:
    changed = copy.deepcopy(GARDEN)
    changed["status"] |= status
    return changed


def operation(**fields: Any) -> JsonObject:
    return {"lastOperation": {**GARDEN["status"]["lastOperation"], **fields}}


def conditions(**statuses: str) -> JsonObject:
    return {
        "conditions": [
            {"type": kind, "status": statuses.get(kind, "True"), "message": "etcd is down"}
            for kind in CARE_CONDITIONS
        ]
    }


@pytest.mark.parametrize("targets", [(READY,), (HEALTHY,), (f"condition={HEALTHY}",)])
def test_a_ready_garden_lacks_nothing(targets: tuple[str, ...]) -> None:
    assert [*problems_of(GARDEN, targets)] == []


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({"observedGeneration": 2}, "its newest generation was not reconciled yet"),
        (
            operation(state="Processing", progress=40, description="Deploying"),
            "it is not reconciled (Reconcile Processing, 40 %: Deploying)",
        ),
        (
            operation(type="Delete"),
            "it is not reconciled (Delete Succeeded, 100 %: done)",
        ),
        (conditions(VirtualComponentsHealthy="False"), f"{HEALTHY} is False: etcd is down"),
        ({"lastOperation": {}}, "it is not reconciled"),
    ],
)
def test_each_missing_requirement_is_reported(status: JsonObject, problem: str) -> None:
    assert [*problems_of(garden(**status), (READY,))] == [problem]


def test_a_garden_without_conditions_lacks_each_of_them() -> None:
    problems = [*problems_of(garden(conditions=[]), (READY,))]
    assert [problem.split(" (")[0] for problem in problems] == [
        f"it has no condition {kind}" for kind in CARE_CONDITIONS
    ]


def test_only_the_named_condition_is_checked() -> None:
    live = garden(**conditions(ObservabilityComponentsHealthy="False"))
    assert [*problems_of(live, (HEALTHY,))] == []


def test_the_check_of_the_last_operation_can_be_disabled() -> None:
    live = garden(**operation(state="Error"))
    assert [*problems_of(live, (HEALTHY,))] != []
    assert [*problems_of(live, (HEALTHY,), skips=True)] == []


def test_another_status_can_be_requested() -> None:
    target = f"condition={HEALTHY}=Progressing"
    assert [*problems_of(GARDEN, (target,))] == [f"{HEALTHY} is True: "]
    live = garden(**conditions(VirtualComponentsHealthy="Progressing"))
    assert [*problems_of(live, (target,))] == []


def test_an_absent_garden_only_satisfies_the_wait_for_its_deletion() -> None:
    assert [*problems_of(None, (DELETE,))] == []
    assert [*problems_of(None, (READY,))] == ["it does not exist"]
    assert [*problems_of(GARDEN, (DELETE,))] == ["it exists (Reconcile Succeeded, 100 %: done)"]
