"""The requests that an API server sends to a webhook."""

import pytest

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import GroupVersionResource, Operation
from pergola.admission.selection import Candidate, why_not_selected
from pergola.api.objects import JsonObject

PODS = GroupVersionResource("", "v1", "pods")
SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}


def entry(**changes: JsonObject) -> JsonObject:
    return Registration(
        name="pods.example.org",
        path="/pods",
        kind="mutating",
        rules=(Rule(("CREATE",), ("",), ("v1",), ("pods",)),),
        **changes,  # type: ignore[arg-type] # only selectors are changed
    ).render({})


def test_requests_that_match_rules_and_selectors_are_selected() -> None:
    selecting = entry(
        object_selector={"matchLabels": {"app": "web"}},
        namespace_selector={"matchLabels": SYSTEM},
    )
    candidate = Candidate("CREATE", PODS, labels={"app": "web", "x": "y"}, namespace_labels=SYSTEM)
    assert why_not_selected(selecting, candidate) is None


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (Candidate("UPDATE", PODS), "no rule for UPDATE of pods/v1"),
        (
            Candidate("CREATE", GroupVersionResource("apps", "v1", "deployments")),
            "no rule for CREATE of deployments.apps/v1",
        ),
        (
            Candidate("CREATE", PODS, labels={"skip": "false"}, namespace_labels=SYSTEM),
            "the object's labels do not match: !skip",
        ),
        (
            Candidate("CREATE", PODS, namespace_labels={}),
            "the namespace's labels do not match: kubernetes.io/metadata.name=kube-system",
        ),
    ],
)
def test_the_first_unmet_requirement_is_reported(candidate: Candidate, reason: str) -> None:
    selecting = entry(
        object_selector={"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]},
        namespace_selector={"matchLabels": SYSTEM},
    )
    assert why_not_selected(selecting, candidate) == reason


def test_the_labels_of_an_unknown_namespace_are_assumed_to_match() -> None:
    selecting = entry(namespace_selector={"matchLabels": SYSTEM})
    assert why_not_selected(selecting, Candidate("CREATE", PODS)) is None


@pytest.mark.parametrize(
    ("listed", "resource", "selected"),
    [
        ("pods", "pods", True),
        ("pods", "pods/status", False),
        ("*", "pods", True),
        ("*", "pods/status", False),
        ("*/*", "pods", True),
        ("*/*", "pods/status", True),
        ("pods/*", "pods/status", True),
        ("*/status", "pods/status", True),
        ("*/scale", "pods/status", False),
        ("pods/status", "pods/status", True),
        ("pods/status", "pods", False),
    ],
)
def test_subresources_are_selected_by_name(listed: str, resource: str, selected: bool) -> None:
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": [listed]}
    operation: Operation = "UPDATE"
    candidate = Candidate(operation, GroupVersionResource("", "v1", resource))
    assert (why_not_selected({"rules": [rule]}, candidate) is None) is selected


def test_a_rule_may_apply_to_one_scope_only() -> None:
    rule = Rule(("CREATE",), ("",), ("v1",), ("*",)).render() | {"scope": "Cluster"}
    nodes = GroupVersionResource("", "v1", "nodes")
    assert why_not_selected({"rules": [rule]}, Candidate("CREATE", nodes, namespaced=False)) is None
    assert why_not_selected({"rules": [rule]}, Candidate("CREATE", PODS)) is not None
