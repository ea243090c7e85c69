"""The kube-controller-manager of the virtual cluster (spec 20 §15.4)."""

import pytest

from pergola.api.objects import JsonObject
from pergola.garden.components.kube_controller_manager import (
    KUBE_CONTROLLER_MANAGER,
    command,
    controllers_flag,
)
from tests.support.garden import landscape


def kubernetes(**fields: object) -> JsonObject:
    return {"spec": {"virtualCluster": {"kubernetes": fields}}}


def disabled(*patches: JsonObject) -> set[str]:
    parts = controllers_flag(landscape(*patches)).split(",")
    return {part.removeprefix("-") for part in parts if part.startswith("-")}


def test_controllers_of_nodes_volumes_and_disabled_apis_do_not_run() -> None:
    assert disabled() == {
        "attachdetach",
        "cloud-node-lifecycle",
        "cronjob",
        "daemonset",
        "deployment",
        "disruption",
        "endpoint",
        "ephemeral-volume",
        "horizontalpodautoscaling",
        "job",
        "nodeipam",
        "nodelifecycle",
        "persistentvolume-binder",
        "persistentvolume-expander",
        "pv-protection",
        "replicaset",
        "serviceaccount-token",
        "statefulset",
        "ttl",
        "ttl-after-finished",
    }
    assert controllers_flag(landscape()).startswith("*,bootstrapsigner,tokencleaner,-")


@pytest.mark.parametrize(
    ("version", "added"),
    [
        ("1.32.9", set()),
        ("1.33.0", {"device-taint-eviction-controller"}),
        ("1.34.2", {"podcertificaterequest-cleaner-controller"}),
        ("1.36.0", {"podgroup-protection-controller", "resourcepoolstatusrequest-controller"}),
    ],
)
def test_newer_controllers_are_disabled_in_versions_that_have_them(
    version: str, added: set[str]
) -> None:
    assert added <= disabled(kubernetes(version=version))
    assert not added & disabled(kubernetes(version="1.32.0"))


def test_the_controllers_of_an_api_that_the_garden_enables_run() -> None:
    enabled = kubernetes(kubeAPIServer={"runtimeConfig": {"apps/v1": True}})
    assert disabled() - disabled(enabled) == {
        "daemonset",
        "deployment",
        "replicaset",
        "statefulset",
    }


def test_the_controllers_of_an_api_that_the_garden_disables_do_not_run() -> None:
    apis = {"rbac.authorization.k8s.io/v1": False}
    chosen = kubernetes(kubeAPIServer={"runtimeConfig": apis})
    assert disabled(chosen) - disabled() == {"clusterrole-aggregation"}


def test_settings_of_the_garden_become_flags() -> None:
    chosen = kubernetes(
        kubeControllerManager={
            "certificateSigningDuration": "720h",
            "featureGates": {"A": True, "B": False},
        }
    )
    flags = command(landscape(chosen))
    assert "--cluster-signing-duration=720h0m0s" in flags
    assert "--feature-gates=A=true,B=false" in flags
    assert "--cluster-signing-duration=48h0m0s" in command(landscape())
    assert "--service-cluster-ip-range=100.64.0.0/13" in flags


def test_its_permissions_are_deleted_after_it() -> None:
    [managed] = KUBE_CONTROLLER_MANAGER.objects(landscape()).managed
    assert managed.keep
