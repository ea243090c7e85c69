"""The high-availability webhook: refused and ignored objects."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.admission.review import Verdict
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.resource_manager.webhooks.explanation import applied
from pergola.resource_manager.webhooks.facts.high_availability import (
    PREFIX,
    TODAY,
    NamespaceSettings,
)
from pergola.resource_manager.webhooks.high_availability_config import HighAvailability
from tests.support.reviews import review_of


class Zones:
    """A namespace that spreads over two zones."""

    async def namespace(self, name: str) -> NamespaceSettings:
        return NamespaceSettings("zone", ("a", "b"))

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        return None

    async def many_nodes(self) -> bool:
        return True


def said(obj: JsonObject, **fields: Any) -> Verdict:
    handler = HighAvailability(Zones(), TODAY, not_ready=60)
    return asyncio.run(handler(review_of(obj, namespace="demo", **fields)))


def deployment(metadata: JsonObject | None = None, **pod: Any) -> JsonObject:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", **(metadata or {})},
        "spec": {
            "replicas": 2,
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": pod},
        },
    }


def test_the_skip_label_takes_effect_immediately() -> None:
    # An API server calls the webhook if the old or the new object matches.
    verdict = said(deployment({"labels": {f"{PREFIX}/skip": "false"}}), operation="UPDATE")
    assert (verdict.edits, verdict.because) == ((), f"it has the label {PREFIX}/skip")


@pytest.mark.parametrize("value", [" 4", "4 ", "4\n", "+ 4", "2147483648"])
def test_a_number_with_spaces_or_out_of_range_is_refused(value: str) -> None:
    labels = {f"{PREFIX}/type": "server"}
    verdict = said(deployment({"labels": labels, "annotations": {f"{PREFIX}/replicas": value}}))
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 403, "Forbidden")
    assert value in verdict.message


def test_a_selector_that_selects_everything_gets_the_template_hash() -> None:
    foreign = {"topologyKey": "k", "labelSelector": {}}
    obj = deployment(topologySpreadConstraints=[foreign])
    first = applied(obj, said(obj).edits)["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert first[0] == {**foreign, "matchLabelKeys": ["pod-template-hash"]}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"spec": {"replicas": "2"}}, "spec.replicas: expected a number, found a string"),
        ({"spec": {"replicas": True}}, "spec.replicas: expected a number, found a boolean"),
        ({"spec": []}, "spec: expected a map, found a list"),
        ({"metadata": {"labels": {f"{PREFIX}/type": 1}}}, "expected a string, found a number"),
        ({"spec": {"template": {"spec": {"affinity": 1}}}}, "affinity: expected a map"),
    ],
)
def test_an_invalid_deployment_is_refused_with_the_field(change: JsonObject, field: str) -> None:
    verdict = said({**deployment(), **change})
    assert (verdict.allowed, verdict.code) == (False, 400)
    assert verdict.message.startswith("cannot decode the Deployment.apps: ")
    assert field in verdict.message


NAMES = [
    "labels",
    "annotations",
    f"{PREFIX}/type",
    f"{PREFIX}/replicas",
    f"{PREFIX}/host-spread",
    "replicas",
    "minReplicas",
    "template",
    "metadata",
    "spec",
    "hpa",
    "selector",
    "affinity",
    "nodeAffinity",
    "tolerations",
    "topologySpreadConstraints",
    "labelSelector",
    "matchLabelKeys",
    "key",
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "2"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=10,
)
PODS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("affinity", "tolerations", "topologySpreadConstraints"), ANYTHING),
)
SPECS = ANYTHING | st.fixed_dictionaries(
    {"replicas": st.integers(0, 3), "template": st.fixed_dictionaries({"spec": PODS})},
    optional={"selector": ANYTHING},
)
KINDS = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("autoscaling.k8s.io/v1alpha1", "Hvpa"),
]


@given(kind=st.sampled_from(KINDS), metadata=ANYTHING, spec=SPECS)
def test_every_request_gets_a_response_and_changes_are_idempotent(
    kind: tuple[str, str], metadata: Any, spec: Any
) -> None:
    obj = {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}
    verdict = said(obj)
    if not verdict.allowed:
        assert verdict.code in (400, 403)
        assert verdict.message
        return
    again = said(applied(obj, verdict.edits))
    assert (again.allowed, again.edits) == (True, ())
