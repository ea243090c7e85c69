"""Triggers of the reconciliation of a Garden, and the changes at its start (spec 20 §8, §9)."""

from datetime import UTC, datetime

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import garden_from
from pergola.flow import FlowFailed, TaskFailed
from pergola.flow.outcome import Result
from pergola.operator.reconcile.operation import beginning, remaining
from pergola.operator.reconcile.status import last_errors, sentence
from pergola.operator.reconcile.triggers import matters, request_in
from pergola.operator.start_checks import version_problem
from pergola.runtime.caching.cache import Change
from tests.support.gardens import MINIMAL

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OPERATION = "gardener.cloud/operation"


def garden(generation: int = 1, **metadata: object) -> JsonObject:
    return {"metadata": {"name": "garden", "generation": generation, **metadata}}


def matter(old: JsonObject | None, new: JsonObject | None) -> bool:
    before, now = (request_in(each) if each else None for each in (old, new))
    return matters(Change(Key("", "garden"), before, now))


@pytest.mark.parametrize(
    ("old", "new", "triggers"),
    [
        (None, garden(), True),
        (garden(), None, False),
        (garden(), garden(2), True),
        (garden(), garden(labels={"a": "b"}), False),
        (garden(), garden(annotations={"a": "b"}), False),
        (garden(), garden(annotations={OPERATION: "reconcile"}), True),
        (garden(annotations={OPERATION: "reconcile"}), garden(), False),
        (garden(), garden(annotations={OPERATION: "unknown"}), False),
        (garden(), garden(deletionTimestamp="2026-01-01T00:00:00Z"), True),
        (garden(), garden(2, annotations={"operator.gardener.cloud/ignore": "true"}), False),
        (garden(annotations={"operator.gardener.cloud/ignore": "true"}), garden(), True),
    ],
)
def test_only_requested_operations_trigger(
    old: JsonObject | None, new: JsonObject | None, *, triggers: bool
) -> None:
    assert matter(old, new) is triggers


def test_handled_operations_are_removed_from_the_annotation_and_unknown_ones_kept() -> None:
    def left(operations: str) -> JsonObject | None:
        return remaining(garden(annotations={OPERATION: operations}, resourceVersion="7"))

    def patch(operations: str | None) -> JsonObject:
        return {"metadata": {"annotations": {OPERATION: operations}, "resourceVersion": "7"}}

    assert left("reconcile;future;rotate-ca-start") == patch("future")
    assert left("reconcile") == patch(None)
    assert left("future") is None


def test_the_address_of_the_virtual_cluster_is_advertised() -> None:
    found = beginning(garden_from(MINIMAL), [], NOW)
    domain = MINIMAL["spec"]["virtualCluster"]["dns"]["domains"][0]["name"]
    assert found == {
        "advertisedAddresses": [{"name": "virtual-garden", "url": f"https://api.{domain}"}]
    }


@pytest.mark.parametrize(
    ("before", "now", "problem"),
    [
        ("v1.100.3", "v1.102.0", "skipping a minor version"),
        ("v1.100.3", "v1.99.9", "downgrading"),
        ("v1.100.3", "v1.100.2", "downgrading"),
        ("v1.100.3", "v1.101.3", None),
        ("v1.100.3", "v1.100.3", None),
        ("", "v1.1.0", None),
    ],
)
def test_versions_neither_decrease_nor_skip_a_minor_version(
    before: str, now: str, problem: str | None
) -> None:
    found = version_problem(before, now)
    assert (found is None) if problem is None else (found is not None and problem in found)


def test_each_failed_task_has_its_own_error() -> None:
    failures = [
        TaskFailed("Deploying Istio", "no address", codes=("ERR_CONFIGURATION_PROBLEM",)),
        TaskFailed("Deploying Vali", "no disk"),
    ]
    error = FlowFailed(Result("Garden reconciliation", {}, 1.0), failures)
    errors = last_errors(error, "2026-01-02T03:04:05Z")
    assert [each["taskID"] for each in errors] == ["Deploying Istio", "Deploying Vali"]
    assert errors[0]["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert "codes" not in errors[1]


def test_an_error_is_a_sentence() -> None:
    assert sentence(ValueError("no disk")) == "no disk."
    assert sentence(ValueError("")) == "ValueError."
