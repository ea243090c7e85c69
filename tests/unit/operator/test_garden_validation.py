"""Validation of whole Gardens: spec 20 §6, spec 21 §7."""

from pathlib import Path

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import garden_from
from pergola.garden.rules.validation import Facts, check_garden
from pergola.kube.yaml import parse
from tests.support.gardens import (
    FACTS,
    GARDENER,
    MINIMAL,
    RUNTIME,
    SERVER,
    VIRTUAL,
    findings,
    with_values,
)

EXAMPLES = Path(__file__).parents[3] / "examples" / "garden"


def example(name: str) -> JsonObject:
    garden = parse((EXAMPLES / name).read_text())
    assert isinstance(garden, dict)
    return garden


@pytest.mark.parametrize("name", ["garden.yaml", "every-field.yaml"])
def test_the_examples_violate_no_rule(name: str) -> None:
    assert findings(example(name)) == []


def test_a_minimal_garden_violates_no_rule() -> None:
    assert findings(MINIMAL) == []


def test_an_unsupported_version_is_accepted_on_request() -> None:
    facts = Facts(any_version=True)

    assert findings(with_values(MINIMAL, {f"{VIRTUAL}.kubernetes.version": "1.40.0"}), facts) == []


def test_all_violations_are_reported_at_once() -> None:
    broken = with_values(
        MINIMAL,
        {
            f"{RUNTIME}.ingress.domains": [{"name": "A"}],
            f"{RUNTIME}.networking.services": ["10.1.0.0/16"],
            f"{SERVER}.eventTTL": "25h",
            f"{GARDENER}.gardenerDashboard": {"enableTokenLogin": False},
        },
    )

    assert [field for _, field in findings(broken)] == [
        f"{RUNTIME}.ingress.domains[0].name",
        f"{RUNTIME}.networking.pods[0]",
        f"{SERVER}.eventTTL",
        f"{GARDENER}.gardenerDashboard.enableTokenLogin",
    ]


def test_an_intersection_names_both_ranges() -> None:
    garden = with_values(MINIMAL, {f"{RUNTIME}.networking.pods": ["100.64.0.0/16"]})

    [cause] = check_garden(garden_from(garden), FACTS)

    assert cause.field == f"{VIRTUAL}.networking.services[0]"
    assert "spec.runtimeCluster.networking.pods[0]: 100.64.0.0/16" in cause.message
