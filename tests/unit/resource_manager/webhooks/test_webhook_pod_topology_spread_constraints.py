"""Topology spread constraints of pods: spec 12 §6."""

import pytest

from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.pod_topology_spread_constraints import HASH, review
from tests.support.reviews import patched, pod, review_of

ZONE: JsonObject = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
}


def spread(*constraints: JsonObject, **labels: str) -> JsonObject:
    template = {HASH: "123abc"} | labels
    return pod(metadata={"labels": template}, topologySpreadConstraints=list(constraints))


def constraints_after(given: JsonObject) -> list[JsonObject]:
    changed = patched(given, review(review_of(given)))
    assert review(review_of(changed)).edits == ()
    found: list[JsonObject] = changed["spec"]["topologySpreadConstraints"]
    return found


@pytest.mark.parametrize(
    ("given", "because"),
    [
        (
            pod(topologySpreadConstraints=[ZONE]),
            "the pod has no label pod-template-hash: it does not belong to a ReplicaSet",
        ),
        (
            pod(metadata={"labels": {HASH: "123abc"}}),
            "the pod has no topology spread constraints",
        ),
        (spread(), "the pod has no topology spread constraints"),
    ],
)
def test_pods_without_hash_or_constraints_are_unchanged(given: JsonObject, because: str) -> None:
    verdict = review(review_of(given))
    assert (verdict.allowed, verdict.edits, verdict.because) == (True, (), because)


def test_a_missing_hash_is_added_to_selectors() -> None:
    without, other = ZONE, ZONE | {"labelSelector": {"matchLabels": {"app": "test"}}}
    done = ZONE | {"labelSelector": {"matchLabels": {HASH: "123abc"}}}
    assert constraints_after(spread(without, other, done)) == [
        done,
        ZONE | {"labelSelector": {"matchLabels": {"app": "test", HASH: "123abc"}}},
        done,
    ]


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {HASH: "other"}},
        {"matchExpressions": [{"key": HASH, "operator": "In", "values": ["other"]}]},
    ],
)
def test_another_hash_is_not_overwritten(selector: JsonObject) -> None:
    verdict = review(review_of(spread(ZONE | {"labelSelector": selector})))
    assert verdict.because == "all constraints select by pod-template-hash"
    assert verdict.edits == ()


def test_an_expression_that_does_not_pin_the_hash_does_not_count() -> None:
    selector = {"matchExpressions": [{"key": HASH, "operator": "Exists"}]}
    (constraint,) = constraints_after(spread(ZONE | {"labelSelector": selector}))
    assert constraint["labelSelector"] == selector | {"matchLabels": {HASH: "123abc"}}


@pytest.mark.parametrize(
    ("keys", "rest"),
    [([HASH], None), ([HASH, "x"], ["x"]), (["x"], ["x"]), ([], [])],
)
def test_a_label_is_never_both_selected_and_a_match_label_key(
    keys: list[str], rest: list[str] | None
) -> None:
    (constraint,) = constraints_after(spread(ZONE | {"matchLabelKeys": keys}))
    assert constraint.get("matchLabelKeys") == rest
    assert constraint["labelSelector"] == {"matchLabels": {HASH: "123abc"}}


def test_constraints_of_all_topologies_are_handled() -> None:
    rack = ZONE | {"topologyKey": "example.org/rack"}
    host = ZONE | {"topologyKey": "kubernetes.io/hostname", "labelSelector": None}
    for constraint in constraints_after(spread(rack, host)):
        assert constraint["labelSelector"] == {"matchLabels": {HASH: "123abc"}}
