"""The Nodes that the pods of a DaemonSet may run on: spec 11 §5.3, 'should run'."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.node_critical_components.scheduling import (
    is_chosen,
    is_tolerated,
    placement_of,
    untolerated,
)

NODE = "worker-1"
LABELS = {"zone": "a", "cores": "8", "pool": "blue"}


def required(*terms: JsonObject) -> JsonObject:
    """Return a pod spec with a required node affinity."""
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return {"affinity": {"nodeAffinity": selector}}


def expression(key: str, operator: str, *values: str) -> JsonObject:
    """Return a term with one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


def named(operator: str, *values: str, key: str = "metadata.name") -> JsonObject:
    """Return a term with one field."""
    return {"matchFields": [{"key": key, "operator": operator, "values": [*values]}]}


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ({}, True),
        ({"nodeName": NODE}, True),
        ({"nodeName": "worker-2"}, False),
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "a", "pool": "blue"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"nodeSelector": {"absent": ""}}, False),
        (required(expression("zone", "In", "b", "a")), True),
        (required(expression("zone", "In", "b")), False),
        (required(expression("zone", "In")), False),
        (required(expression("zone", "NotIn", "b")), True),
        (required(expression("zone", "NotIn", "a")), False),
        (required(expression("absent", "NotIn", "a")), True),
        (required(expression("zone", "NotIn")), False),
        (required(expression("zone", "Exists")), True),
        (required(expression("zone", "Exists", "a")), False),
        (required(expression("absent", "Exists")), False),
        (required(expression("absent", "DoesNotExist")), True),
        (required(expression("zone", "DoesNotExist")), False),
        (required(expression("cores", "Gt", "7")), True),
        (required(expression("cores", "Gt", "8")), False),
        (required(expression("cores", "Lt", "9")), True),
        (required(expression("cores", "Lt", "-9")), False),
        (required(expression("cores", "Gt", "7", "6")), False),
        (required(expression("cores", "Gt", "7.5")), False),
        (required(expression("cores", "Gt", "7_0")), False),
        (required(expression("cores", "Lt", "99999999999999999999")), False),
        (required(expression("cores", "Lt", "9" * 5000)), False),
        (required(expression("cores", "Gt", "-" + "9" * 5000)), False),
        (required(expression("cores", "Gt", "0" * 5000 + "7")), True),
        (required(expression("cores", "Gt", "-" + "0" * 5000)), True),
        (required(expression("zone", "Gt", "1")), False),
        (required(expression("absent", "Lt", "1")), False),
        (required(expression("zone", "Like", "a")), False),
        (required(named("In", NODE)), True),
        (required(named("In", "worker-2")), False),
        (required(named("In", NODE, "worker-2")), False),
        (required(named("NotIn", "worker-2")), True),
        (required(named("NotIn", NODE)), False),
        (required(named("Exists")), False),
        (required(named("In", NODE, key="metadata.uid")), False),
        (required(), False),
        (required({}), False),
        (required({}, expression("zone", "Exists")), True),
        (required(expression("zone", "Like", "a"), expression("zone", "Exists")), True),
        (required(expression("zone", "In", "a") | named("In", "worker-2")), False),
        (required(expression("zone", "In", "a") | named("In", NODE)), True),
        ({"nodeSelector": {"zone": "a"}} | required(expression("pool", "In", "red")), False),
        ({"affinity": {"podAffinity": {}}}, True),
        ({"affinity": {"nodeAffinity": None}}, True),
    ],
)
def test_a_template_selects_nodes_by_selector_and_affinity(spec: JsonObject, chosen: bool) -> None:
    assert is_chosen(placement_of(spec), NODE, LABELS) is chosen


TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "dedicated", "value": "gpu"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "gpu"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "cpu"}, False),
        ({"key": "dedicated"}, False),
        ({"key": "dedicated", "operator": "Like", "value": "gpu"}, False),
    ],
)
def test_tolerations_match_taints_as_in_kubernetes(toleration: JsonObject, covers: bool) -> None:
    assert is_tolerated(TAINT, [toleration]) is covers


def test_a_toleration_without_a_value_matches_a_taint_without_one() -> None:
    assert is_tolerated({"key": "a", "effect": "NoExecute"}, [{"key": "a", "operator": "Equal"}])


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    ],
)
def test_daemon_set_pods_have_default_tolerations(name: str, effect: str) -> None:
    other = "NoSchedule" if effect == "NoExecute" else "NoExecute"
    taints = [{"key": f"node.kubernetes.io/{name}", "effect": e} for e in (effect, other)]
    assert untolerated(placement_of({}).tolerations, taints) == [taints[1]]


@pytest.mark.parametrize("host_network", [True, False])
def test_only_host_network_pods_tolerate_an_unavailable_network(host_network: bool) -> None:
    taint = {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}
    tolerations = placement_of({"hostNetwork": host_network}).tolerations
    assert untolerated(tolerations, [taint]) == ([] if host_network else [taint])


def test_a_soft_taint_repels_no_pods() -> None:
    assert untolerated([], [{"key": "a", "effect": "PreferNoSchedule"}]) == []


texts = st.sampled_from(["", "a", "b", "1", "-7", "zone", "cores", "metadata.name"])
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like", None])
requirements = st.fixed_dictionaries(
    {}, optional={"key": texts, "operator": operators, "values": st.lists(texts) | st.none()}
)
terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(requirements) | st.none(),
        "matchFields": st.lists(requirements),
    },
)


@given(st.lists(terms), terms)
def test_an_additional_term_never_removes_a_node(some: list[JsonObject], other: JsonObject) -> None:
    before = is_chosen(placement_of(required(*some)), NODE, LABELS)
    after = is_chosen(placement_of(required(*some, other)), NODE, LABELS)
    assert after == (before or is_chosen(placement_of(required(other)), NODE, LABELS))


@given(terms, requirements)
def test_an_additional_requirement_never_adds_a_node(term: JsonObject, further: JsonObject) -> None:
    present = [r for part in ("matchExpressions", "matchFields") for r in term.get(part) or []]
    narrower = term | {"matchExpressions": [*(term.get("matchExpressions") or []), further]}
    if present and is_chosen(placement_of(required(narrower)), NODE, LABELS):
        assert is_chosen(placement_of(required(term)), NODE, LABELS)
