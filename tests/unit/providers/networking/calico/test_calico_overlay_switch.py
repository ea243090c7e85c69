"""When an overlay may be removed (spec 40 §5.3 step 5); an integration test covers the wait."""

import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.cluster import Shoot
from pergola.providers.networking.calico.overlay_switch import (
    can_have_policy,
    has_overlay,
    without_routes,
)


def shoot(version: str, **server: object) -> Shoot:
    return Shoot({"spec": {"kubernetes": {"version": version, "kubeAPIServer": server}}})


GATE = {"MutatingAdmissionPolicy": True}
BETA = {"admissionregistration.k8s.io/v1beta1": True}
ALPHA = {"admissionregistration.k8s.io/v1alpha1": True}


@pytest.mark.parametrize(
    ("of", "possible"),
    [
        (shoot("1.36.0"), True),
        (shoot("2.0.0"), True),
        (shoot("1.35.9"), False),
        (shoot("1.35.9", featureGates=GATE), False),
        (shoot("1.35.9", runtimeConfig=BETA), False),
        (shoot("1.35.9", featureGates=GATE, runtimeConfig=BETA), True),
        (shoot("1.34.1", featureGates=GATE, runtimeConfig=ALPHA), True),
        (shoot(""), False),
    ],
)
def test_nodes_report_their_routes_only_with_mutating_policies(
    of: Shoot, *, possible: bool
) -> None:
    assert can_have_policy(of) is possible


@pytest.mark.parametrize(
    ("variables", "overlay"),
    [
        ({"FELIX_IPINIPENABLED": "true"}, True),
        ({"FELIX_VXLANENABLED": "true"}, True),
        ({"FELIX_IPINIPENABLED": "false", "FELIX_VXLANENABLED": "false"}, False),
        ({}, False),
    ],
)
def test_an_overlay_is_detected_by_its_tunnels(variables: dict[str, str], *, overlay: bool) -> None:
    env = [{"name": name, "value": value} for name, value in variables.items()]
    daemon_set = {"spec": {"template": {"spec": {"containers": [{"name": "x"}, {"env": env}]}}}}

    assert has_overlay(daemon_set) is overlay


def node(name: str, **condition: str) -> JsonObject:
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


def test_a_node_has_routes_when_its_condition_reports_them() -> None:
    nodes = [
        node("unknown"),
        node("calico", type="NetworkUnavailable", status="False", reason="CalicoIsUp"),
        node("without", type="NetworkUnavailable", status="True", reason="RouteCreated"),
        node("with", type="NetworkUnavailable", status="False", reason="RouteCreated"),
    ]

    assert without_routes(nodes) == ["calico", "unknown", "without"]
    assert without_routes([]) == []
