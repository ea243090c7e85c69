"""MachineDeployments rendered from live ones: spec 31 §4.3."""

from typing import Any, Final

import pytest

from pergola.api.objects import JsonObject
from pergola.extensions.workers.deployments import machine_deployment, replicas_of
from pergola.extensions.workers.desired import DesiredMachines
from pergola.extensions.workers.live import Live
from pergola.extensions.workers.rollout import failed_machines

NAME: Final = "shoot-pool-z1"
WORKER: Final[JsonObject] = {"metadata": {"name": "worker", "namespace": "shoot"}}
THRESHOLD: Final = "autoscaler.gardener.cloud/scale-down-utilization-threshold"
UNNEEDED: Final = "autoscaler.gardener.cloud/scale-down-unneeded-time"
FOREIGN: Final = {"example.com/kept": "yes"}


def machines(
    class_name: str = "a", options: dict[str, str | None] | None = None, **template: Any
) -> DesiredMachines:
    return DesiredMachines(
        name=NAME,
        class_name=class_name,
        pool="pool",
        minimum=2,
        maximum=5,
        priority=None,
        preserved=None,
        is_manual=False,
        machine_class={},
        secret={},
        options=options or {},
        template={"class": {"name": class_name}, **template},
        strategy={"type": "RollingUpdate"},
    )


def test_unset_options_are_removed_and_foreign_annotations_stay() -> None:
    set_before = machines(options={THRESHOLD: "0.4", UNNEEDED: "1h0m0s"})
    live = machine_deployment(set_before, WORKER, None, 2)
    live["metadata"]["annotations"] |= FOREIGN

    found = machine_deployment(
        machines(options={THRESHOLD: None, UNNEEDED: "1h0m0s"}), WORKER, live, 2
    )

    assert found["metadata"]["annotations"] == {UNNEEDED: "1h0m0s", **FOREIGN}


def test_going_back_leaves_no_taint_or_label_of_the_pool_between() -> None:
    labels = {"metadata": {"labels": {"batch": "yes"}}}
    taints = {"spec": {"taints": [{"key": "batch", "effect": "NoSchedule"}]}}
    first = machine_deployment(machines(nodeTemplate={"spec": {}}), WORKER, None, 2)
    second = machine_deployment(machines("b", nodeTemplate=labels | taints), WORKER, first, 2)

    back = machine_deployment(machines(nodeTemplate={"spec": {}}), WORKER, second, 2)

    assert back == first


@pytest.mark.parametrize(("live", "expected"), [(1, 2), (2, 2), (4, 4), (5, 5), (7, 5)])
def test_a_deployment_keeps_its_replicas_during_a_roll_out(live: int, expected: int) -> None:
    rolling = machine_deployment(machines("old"), WORKER, None, live)

    found = replicas_of(machines("new"), rolling, is_hibernated=False, scales=True, wakes_up=False)

    assert found == expected


def test_failures_are_reported_while_a_shoot_falls_asleep() -> None:
    sleeping = machine_deployment(machines(), WORKER, None, 0)
    last = {"description": "UnauthorizedOperation: no", "type": "Delete"}
    sleeping["status"] = {"failedMachines": [{"name": "m", "lastOperation": last}]}

    assert failed_machines(Live({NAME: sleeping}), [NAME]) == (
        'machine(s) failed: "m": UnauthorizedOperation: no'
    )
