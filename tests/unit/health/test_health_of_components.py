"""The rows of spec 10 appendix A that are about one object and its conditions."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.marks import SKIP_HEALTH_CHECK
from pergola.api.objects import JsonObject
from pergola.health import (
    check_api_service,
    check_etcd,
    check_garden,
    check_machine_deployment,
    check_managed_seed,
    check_node,
    check_seed,
)

Damage = Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]

GARDENER = {"id": "abc", "name": "gardenlet-0", "version": "1.100.0"}
Check = Callable[[JsonObject], str | None]


def with_conditions(statuses: dict[str, str]) -> JsonObject:
    conditions = [{"type": kind, "status": status} for kind, status in statuses.items()]
    return {
        "metadata": {"name": "it", "generation": 3},
        "status": {"conditions": conditions},
    }


def live(observed: int = 3, *, ready: bool | None = None, **statuses: str) -> JsonObject:
    found = {"observedGeneration": observed, "ready": ready, "gardener": GARDENER}
    obj = with_conditions(statuses)
    return obj | {"status": obj["status"] | found}


def check_own_seed(obj: JsonObject) -> str | None:
    return check_seed(obj, GARDENER)


CARE: dict[str, Any] = {
    "VirtualGardenAPIServerAvailable": "True",
    "RuntimeComponentsHealthy": "True",
    "VirtualComponentsHealthy": "True",
    "ObservabilityComponentsHealthy": "True",
}


def garden(
    state: str = "Succeeded", progress: int = 100, kind: str = "Reconcile", **statuses: Any
) -> JsonObject:
    obj = live(**(CARE | statuses))
    operation = {"type": kind, "state": state, "progress": progress}
    return obj | {"status": obj["status"] | {"lastOperation": operation}}


WELL = [
    (check_garden, garden()),
    (check_garden, garden(Other="False")),
    (check_api_service, live(Available="True")),
    (check_etcd, live(ready=True)),
    (check_etcd, live(ready=True, BackupReady="True")),
    (check_machine_deployment, live(Available="True")),
    (
        check_machine_deployment,
        live(4, Available="True", Progressing="True", ReplicaFailure="False", Frozen="False"),
    ),
    (check_managed_seed, live(ShootReconciled="True", SeedRegistered="True")),
    (check_own_seed, live(GardenletReady="True", SeedSystemComponentsHealthy="True")),
]


@pytest.mark.parametrize(("check", "obj"), WELL)
def test_a_healthy_component_has_no_problem(check: Check, obj: JsonObject) -> None:
    assert check(obj) is None


BEHIND = "observed generation 2 is behind generation 3"


@pytest.mark.parametrize(
    ("check", "obj", "words"),
    [
        (check_api_service, live(), "condition Available is missing"),
        (check_api_service, live(Available="False"), "condition Available is False"),
        (
            check_garden,
            garden("Processing", 40),
            "the last operation is Reconcile Processing at 40 %, expected Reconcile Succeeded",
        ),
        (check_garden, garden(kind="Delete"), "the last operation is Delete Succeeded at 100 %"),
        (check_garden, garden(progress=99), "at 99 %"),
        (check_garden, live(**CARE), "the last operation is unknown unknown at unknown %"),
        (check_garden, live(2, **CARE), BEHIND),
        (
            check_garden,
            garden(VirtualComponentsHealthy="Progressing"),
            "VirtualComponentsHealthy is Progressing",
        ),
        (check_etcd, live(), 'etcd "it" is not ready yet'),
        (check_etcd, live(ready=False), 'etcd "it" is not ready yet'),
        (
            check_etcd,
            live(ready=True, BackupReady="Unknown"),
            'backup for etcd "it" is reported as unready: no message',
        ),
        (check_machine_deployment, live(2, Available="True"), BEHIND),
        (check_machine_deployment, live(), "condition Available is missing"),
        (check_machine_deployment, live(Available="False"), "Available is False"),
        (
            check_machine_deployment,
            live(Available="True", Progressing="False"),
            "Progressing is False",
        ),
        (
            check_machine_deployment,
            live(Available="True", ReplicaFailure="True"),
            "ReplicaFailure is True",
        ),
        (check_machine_deployment, live(Available="True", Frozen="True"), "Frozen is True"),
        (check_managed_seed, live(2, ShootReconciled="True", SeedRegistered="True"), BEHIND),
        (check_managed_seed, live(SeedRegistered="True"), "ShootReconciled is missing"),
        (check_managed_seed, live(ShootReconciled="True"), "SeedRegistered is missing"),
        (
            check_own_seed,
            live(2, GardenletReady="True", SeedSystemComponentsHealthy="True"),
            BEHIND,
        ),
        (check_own_seed, live(SeedSystemComponentsHealthy="True"), "GardenletReady is missing"),
        (check_own_seed, live(GardenletReady="True"), "SeedSystemComponentsHealthy is missing"),
    ],
)
def test_the_failure_text_of_a_component_names_the_problem(
    check: Check, obj: JsonObject, words: str
) -> None:
    assert words in (check(obj) or "")


@pytest.mark.parametrize("change", [{"id": "other"}, {"version": "1.99.0"}, {"name": None}])
def test_a_seed_of_another_gardener_version_is_unhealthy(change: JsonObject) -> None:
    seed = live(GardenletReady="True", SeedSystemComponentsHealthy="True")
    seed["status"]["gardener"] = GARDENER | change
    [field] = change

    assert f"status.gardener.{field} is {change[field] or 'not set'}" in (
        check_own_seed(seed) or ""
    )


def test_a_seed_that_no_gardener_claims_is_unhealthy() -> None:
    seed = live(GardenletReady="True", SeedSystemComponentsHealthy="True")
    del seed["status"]["gardener"]

    assert check_own_seed(seed) == "status.gardener.id is not set, expected abc"


# Must hold


PRESSURES = ("DiskPressure", "MemoryPressure", "NetworkUnavailable", "PIDPressure")


@pytest.mark.parametrize("pressure", PRESSURES)
def test_a_ready_node_under_pressure_is_unhealthy(pressure: str) -> None:
    assert f"{pressure} is True" in (
        check_node(with_conditions({"Ready": "True", pressure: "True"})) or ""
    )


def test_a_ready_node_is_healthy_with_and_without_pressure_conditions() -> None:
    assert check_node(live(Ready="True")) is None
    assert (
        check_node(with_conditions(dict.fromkeys(PRESSURES, "False") | {"Ready": "True"})) is None
    )


@pytest.mark.parametrize("statuses", [{}, {"Ready": "False"}, {"Ready": "Unknown"}])
def test_a_node_that_is_not_ready_is_unhealthy(statuses: dict[str, str]) -> None:
    assert "condition Ready is" in (check_node(with_conditions(statuses)) or "")


def test_a_wait_ignores_the_annotation_that_skips_health_checks() -> None:
    skipped = {"metadata": {"annotations": {SKIP_HEALTH_CHECK: "true"}}}

    assert check_node(skipped) is not None


CHECKS = [
    check_api_service,
    check_etcd,
    check_garden,
    check_machine_deployment,
    check_managed_seed,
    check_node,
    check_own_seed,
]


@given(st.sampled_from(CHECKS), st.data())
def test_a_malformed_component_never_raises(
    damage: Damage, check: Check, data: st.DataObject
) -> None:
    assert check(damage(data, [obj for _, obj in WELL])) != ""
