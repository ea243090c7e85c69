"""The rules by which objects that the operator awaits are ready."""

from typing import Final

import pytest

from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.component import Managed, Rendered
from pergola.garden.components.service_mesh.objects import ISTIO
from pergola.kube.patches import apply_merge_patch
from pergola.operator.run.readiness import awaited, direct_problem
from tests.support.garden import landscape

ON_TRIAL: Final[JsonObject] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "server", "namespace": "garden", "generation": 1},
    "spec": {"replicas": 2, "minReadySeconds": 30},
    "status": {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "unavailableReplicas": 2,
        "conditions": [
            {"type": "Available", "status": "False"},
            {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
        ],
    },
}
"""A Deployment whose first replicas are ready, but not for 30 seconds yet."""


def problem_of(patch: JsonObject) -> str | None:
    return direct_problem(DEPLOYMENT)(apply_merge_patch(ON_TRIAL, patch))


def test_a_new_deployment_is_ready_once_its_replicas_are() -> None:
    assert problem_of({}) is None


@pytest.mark.parametrize(
    "patch",
    [
        {"status": {"replicas": 4, "readyReplicas": 4}},
        {"status": {"replicas": 3}},
        {"status": {"readyReplicas": 1}},
        {"status": {"updatedReplicas": 1}},
        {"status": {"observedGeneration": 0}},
        {"spec": {"replicas": 3}},
        {"spec": {"replicas": 0}, "status": dict.fromkeys(ON_TRIAL["status"], None)},
    ],
)
def test_a_rollout_is_awaited_while_a_replica_is_old_or_not_ready(patch: JsonObject) -> None:
    assert problem_of(patch)


def test_the_deployment_of_a_managed_resource_is_awaited_instead_of_its_health() -> None:
    managed = Managed(name="all", objects=(), deployment="server")
    resource, deployment = awaited(Rendered(managed=(managed,)))
    assert resource.identity == (MANAGED_RESOURCE, Key("garden", "all"))
    applied = {"type": "ResourcesApplied", "status": "True"}
    unhealthy = {"type": "ResourcesHealthy", "status": "False"}
    status: JsonObject = {"observedGeneration": 1, "conditions": [applied, unhealthy]}
    assert resource.problem_of({"metadata": {"generation": 1}, "status": status}) is None
    assert resource.problem_of({"metadata": {"generation": 2}, "status": status})
    assert deployment.identity == (DEPLOYMENT, Key("garden", "server"))


def test_the_gateway_comes_after_the_control_plane_that_creates_its_mounts() -> None:
    control_plane, gateway = ISTIO.render(landscape()).managed
    assert (control_plane.follows, gateway.follows) == (False, True)
