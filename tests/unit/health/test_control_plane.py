"""The health of a control plane, in the order of causes (spec 21 §2.3)."""

from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.health import CareFailure, check_control_plane, deployment_problem, etcd_problem

Damage = Callable[[st.DataObject, Sequence[JsonObject]], JsonObject]

ETCDS = {"etcd-events": "", "etcd-main": ""}
DEPLOYMENTS = {"apiserver": "", "controller-manager": ""}


def checked(
    etcds: Mapping[str, str] = ETCDS, deployments: Mapping[str, str] = DEPLOYMENTS
) -> CareFailure | None:
    return check_control_plane(
        etcds, deployments, required_etcds=ETCDS, required_deployments=DEPLOYMENTS
    )


def deployment(observed: int = 3, **statuses: str) -> JsonObject:
    return {
        "metadata": {"name": "apiserver", "generation": 3},
        "status": {
            "observedGeneration": observed,
            "conditions": [
                {"type": kind, "status": status, "reason": "Because", "message": "so it is"}
                for kind, status in statuses.items()
            ],
        },
    }


def etcd(*, ready: bool = True, backup: str = "", errors: Sequence[str] = ()) -> JsonObject:
    backups = [{"type": "BackupReady", "status": backup, "message": "no snapshot"}]
    return {
        "metadata": {"name": "etcd-main"},
        "status": {
            "ready": ready,
            "conditions": backups if backup else [],
            "lastErrors": [{"description": error} for error in errors],
        },
    }


def test_a_healthy_control_plane_has_no_problem() -> None:
    assert checked() is None


def test_a_missing_etcd_hides_a_missing_deployment() -> None:
    assert checked({"etcd-main": ""}, {}) == CareFailure(
        "EtcdMissing", "Missing required etcds: [etcd-events]"
    )


def test_all_missing_objects_are_reported_in_order() -> None:
    assert checked({}) == CareFailure(
        "EtcdMissing", "Missing required etcds: [etcd-events, etcd-main]"
    )
    assert checked(deployments={}) == CareFailure(
        "DeploymentMissing", "Missing required deployments: [apiserver, controller-manager]"
    )


def test_a_missing_etcd_comes_before_an_unhealthy_one() -> None:
    found = checked({"etcd-main": "it is down"})
    assert found is not None
    assert found.reason == "EtcdMissing"


def test_all_unhealthy_objects_are_reported_in_order() -> None:
    assert checked({"etcd-main": "b", "etcd-events": "a"}, {}) == CareFailure(
        "EtcdUnhealthy",
        'Etcd extension resource "etcd-events" is unhealthy: a; '
        'Etcd extension resource "etcd-main" is unhealthy: b',
    )


def test_every_listed_deployment_counts_even_if_it_is_not_required() -> None:
    assert checked(deployments=DEPLOYMENTS | {"more": "it is down"}) == CareFailure(
        "DeploymentUnhealthy", 'Deployment "more" is unhealthy: it is down'
    )


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        (deployment(Available="True"), ""),
        (deployment(Available="True", Progressing="True", ReplicaFailure="False"), ""),
        (deployment(2, Available="True"), "observed generation outdated (2/3)"),
        (deployment(), 'condition "Available" is missing'),
        (
            deployment(Available="True", ReplicaFailure="True"),
            (
                'condition "ReplicaFailure" has invalid status True (expected False) '
                "due to Because: so it is"
            ),
        ),
        (
            deployment(Available="False", Progressing="False"),
            (
                'condition "Available" has invalid status False (expected True) '
                "due to Because: so it is"
            ),
        ),
    ],
)
def test_a_deployment_is_described_in_the_texts_that_clients_match(
    obj: JsonObject, problem: str
) -> None:
    assert deployment_problem(obj) == problem


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        (etcd(), ""),
        (etcd(backup="True", errors=["an old one"]), ""),
        (etcd(ready=False), 'etcd "etcd-main" is not ready yet'),
        (
            etcd(ready=False, errors=["a quota", "a node"]),
            'etcd "etcd-main" is not ready yet (a quota, a node)',
        ),
        (
            etcd(backup="False"),
            'backup for etcd "etcd-main" is reported as unready: no snapshot',
        ),
    ],
)
def test_an_etcd_is_described_with_its_last_errors(obj: JsonObject, problem: str) -> None:
    assert etcd_problem(obj) == problem


@given(st.data())
def test_malformed_objects_never_raise(damage: Damage, data: st.DataObject) -> None:
    broken = damage(data, [deployment(Available="True"), etcd(backup="True", errors=["a"])])
    etcd_problem(broken)
    deployment_problem(broken)
