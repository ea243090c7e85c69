"""The operators of observability: prometheus, perses, victoria, opentelemetry, fluent (§16.8)."""

import pytest

from pergola.api.objects import JsonObject, map_at
from pergola.garden.components.component import Component, Managed
from pergola.garden.components.observability.fluent_operator import (
    FLUENT_OPERATOR,
    granted_to_fluent_bit,
)
from pergola.garden.components.observability.opentelemetry_operator import OPENTELEMETRY_OPERATOR
from pergola.garden.components.observability.perses_operator import PERSES_OPERATOR
from pergola.garden.components.observability.prometheus_operator import PROMETHEUS_OPERATOR
from pergola.garden.components.observability.victoria_operator import VICTORIA_OPERATOR
from tests.support.garden import landscape

OPERATORS = (
    PROMETHEUS_OPERATOR,
    PERSES_OPERATOR,
    VICTORIA_OPERATOR,
    OPENTELEMETRY_OPERATOR,
    FLUENT_OPERATOR,
)


def managed_by(component: Component) -> Managed:
    (found,) = component.objects(landscape()).managed
    return found


def only(component: Component, kind: str) -> JsonObject:
    (found,) = (obj for obj in managed_by(component).objects if obj["kind"] == kind)
    return found


@pytest.mark.parametrize("component", OPERATORS, ids=lambda each: each.name)
def test_an_operator_has_an_image_an_autoscaler_and_the_lowest_priority(
    component: Component,
) -> None:
    pod = map_at(only(component, "Deployment"), "spec", "template", "spec")
    assert pod["priorityClassName"] == "gardener-garden-system-100"
    assert pod["containers"][0]["image"] == landscape().image(component.name)
    target = map_at(only(component, "VerticalPodAutoscaler"), "spec", "targetRef")
    assert target["name"] == component.name


def test_conditions_report_on_the_operators_as_specified() -> None:
    conditions = {managed_by(each).name: managed_by(each).condition for each in OPERATORS}
    assert conditions == {
        "prometheus-operator": "ObservabilityComponentsHealthy",
        "perses-operator": "ObservabilityComponentsHealthy",
        "victoria-operator": "ObservabilityComponentsHealthy",
        "opentelemetry-operator": "",
        "fluent-operator": "",
    }


def test_prometheus_pods_use_the_reloader_image_of_the_image_vector() -> None:
    pod = map_at(only(PROMETHEUS_OPERATOR, "Deployment"), "spec", "template", "spec")
    reloader = landscape().image("configmap-reloader")
    assert f"--prometheus-config-reloader={reloader}" in pod["containers"][0]["args"]


def test_fluent_operator_has_the_permissions_that_it_grants_to_fluent_bit() -> None:
    rules = only(FLUENT_OPERATOR, "ClusterRole")["rules"]
    assert all(granted in rules for granted in granted_to_fluent_bit())
