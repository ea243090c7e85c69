"""Hints of endpoints: spec 12 §8."""

from pergola.admission.review import Operation
from pergola.admission.selection import Candidate, why_not_selected
from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.endpoint_slice_hints import (
    CONSIDER,
    registrations,
    review,
)
from pergola.resource_manager.webhooks.installation import Installation
from tests.support.reviews import patched, review_of


def endpoint_slice(*endpoints: JsonObject) -> JsonObject:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "web", "namespace": "garden"},
        "endpoints": list(endpoints),
    }


def hinted(zone: str) -> JsonObject:
    return {"forZones": [{"name": zone}]}


def after(given: JsonObject, operation: Operation = "CREATE") -> list[JsonObject]:
    found: list[JsonObject] = patched(given, review(review_of(given, operation)))["endpoints"]
    return found


def test_slices_without_the_label_are_not_sent() -> None:
    (entry,) = registrations(Installation("runtime"))
    resource = review_of(endpoint_slice()).resource
    for operation in ("CREATE", "UPDATE"):
        unlabelled = Candidate(operation, resource)
        assert why_not_selected(entry.render({}), unlabelled)
        labelled = Candidate(operation, resource, labels={CONSIDER: "true"})
        assert why_not_selected(entry.render({}), labelled) is None


def test_only_endpoints_with_a_zone_are_hinted() -> None:
    given = endpoint_slice(
        {"addresses": ["10.1.2.1"]}, {"addresses": ["10.1.2.2"], "zone": ""}, {"zone": "c"}
    )
    assert after(given) == [
        {"addresses": ["10.1.2.1"]},
        {"addresses": ["10.1.2.2"], "zone": ""},
        {"zone": "c", "hints": hinted("c")},
    ]


def test_hints_of_others_are_overwritten_on_updates() -> None:
    given = endpoint_slice(
        {"addresses": ["10.1.2.3"], "zone": "a", "hints": hinted("b")},
        {"addresses": ["10.1.2.4"], "hints": hinted("b")},
    )
    assert after(given, "UPDATE") == [
        {"addresses": ["10.1.2.3"], "zone": "a", "hints": hinted("a")},
        {"addresses": ["10.1.2.4"], "hints": hinted("b")},
    ]


def test_a_second_pass_makes_no_changes() -> None:
    given = endpoint_slice({"zone": "a", "hints": hinted("a")})
    verdict = review(review_of(given))
    assert verdict.edits == ()
    assert verdict.because == "every endpoint with a zone has a hint for it"
    assert review(review_of(endpoint_slice() | {"endpoints": None})).edits == ()
