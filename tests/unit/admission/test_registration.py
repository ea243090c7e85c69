"""Entries of webhook configurations, as an API server would store them: spec 12 §2.1."""

from typing import Literal

import pytest

from pergola.admission.registration import Registration, Rule
from pergola.api.objects import JsonObject

CLIENT: JsonObject = {"service": {"name": "server"}, "caBundle": "Q0E="}
PODS = Rule(("CREATE",), ("",), ("v1",), ("pods",))


def registration(kind: Literal["mutating", "validating"] = "mutating") -> Registration:
    return Registration(name="x.example.org", path="/webhooks/x", kind=kind, rules=(PODS,))


def test_an_entry_has_every_field_that_the_api_server_would_default() -> None:
    assert registration().render(CLIENT) == {
        "name": "x.example.org",
        "admissionReviewVersions": ["v1", "v1beta1"],
        "clientConfig": CLIENT,
        "failurePolicy": "Fail",
        "matchPolicy": "Exact",
        "namespaceSelector": {},
        "objectSelector": {},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "*",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
    }


def test_explicit_settings_are_rendered() -> None:
    condition = {"name": "relevant", "expression": "true"}
    entry = Registration(
        name="x.example.org",
        path="/webhooks/x",
        kind="mutating",
        rules=(PODS, PODS),
        namespace_selector={"matchLabels": {"a": "b"}},
        object_selector={"matchLabels": {"c": "d"}},
        failure_policy="Ignore",
        match_policy="Equivalent",
        timeout_seconds=2,
        reinvocation="IfNeeded",
        match_conditions=(condition,),
    ).render(CLIENT)
    assert entry["namespaceSelector"] == {"matchLabels": {"a": "b"}}
    assert entry["objectSelector"] == {"matchLabels": {"c": "d"}}
    assert (entry["failurePolicy"], entry["matchPolicy"]) == ("Ignore", "Equivalent")
    assert (entry["timeoutSeconds"], entry["reinvocationPolicy"]) == (2, "IfNeeded")
    assert entry["matchConditions"] == [condition]
    assert len(entry["rules"]) == 2


@pytest.mark.parametrize(("kind", "has_policy"), [("mutating", True), ("validating", False)])
def test_only_mutating_webhooks_can_be_reinvoked(
    kind: Literal["mutating", "validating"], has_policy: bool
) -> None:
    entry = registration(kind).render(CLIENT)
    assert ("reinvocationPolicy" in entry) is has_policy
