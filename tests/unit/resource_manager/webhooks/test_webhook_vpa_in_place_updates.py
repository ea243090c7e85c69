"""Update modes of vertical pod autoscalers: spec 12 §13."""

import pytest

from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.installation import Installation, absent
from pergola.resource_manager.webhooks.vpa_in_place_updates import (
    MUTATED,
    SKIP,
    registrations,
    review,
)
from tests.support.reviews import patched, review_of


def autoscaler(policy: JsonObject | None) -> JsonObject:
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "kube-system", "labels": {"a": "b"}},
        "spec": {"targetRef": {"name": "web"}, "updatePolicy": policy},
    }


@pytest.mark.parametrize(
    "policy",
    [
        None,
        {},
        {"minReplicas": 2},
        {"updateMode": None},
        {"updateMode": "Auto"},
        {"updateMode": "Recreate", "minReplicas": 2},
    ],
)
def test_modes_that_evict_are_replaced(policy: JsonObject | None) -> None:
    given = autoscaler(policy)
    changed = patched(given, review(review_of(given, "UPDATE")))
    rest = {name: value for name, value in (policy or {}).items() if name != "updateMode"}
    assert changed["spec"]["updatePolicy"] == rest | {"updateMode": "InPlaceOrRecreate"}
    assert changed["spec"]["targetRef"] == {"name": "web"}
    assert changed["metadata"]["labels"] == {"a": "b", MUTATED: "true"}
    assert review(review_of(changed, "UPDATE")).edits == ()


@pytest.mark.parametrize("mode", ["Initial", "Off", "InPlaceOrRecreate"])
def test_modes_that_do_not_evict_are_kept_without_a_label(mode: str) -> None:
    verdict = review(review_of(autoscaler({"updateMode": mode})))
    assert (verdict.edits, verdict.because) == ((), f"the update mode is {mode}")


def test_autoscalers_with_the_skip_label_are_not_sent() -> None:
    (entry,) = registrations(Installation("target"))
    assert entry.object_selector == {"matchExpressions": [absent(SKIP)]}
