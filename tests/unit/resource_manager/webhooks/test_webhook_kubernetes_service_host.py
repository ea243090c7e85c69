"""The address of the API server in pods: spec 12 §4."""

import pytest

from pergola.admission.selection import Candidate, why_not_selected
from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.kubernetes_service_host import (
    INJECT,
    VARIABLE,
    KubernetesServiceHost,
    registrations,
)
from tests.support.reviews import patched, pod, review_of

review = KubernetesServiceHost("api.example.com")
INJECTED = {"name": VARIABLE, "value": "api.example.com"}


def selected(pod_labels: dict[str, str], namespace_labels: dict[str, str]) -> bool:
    (entry,) = registrations(Installation("target"))
    candidate = Candidate(
        "CREATE",
        review_of(pod()).resource,
        labels=pod_labels,
        namespace_labels=namespace_labels,
    )
    return why_not_selected(entry.render({}), candidate) is None


def test_init_and_normal_containers_get_the_variable() -> None:
    given = pod(
        initContainers=[{"name": "i"}],
        containers=[{"name": "a"}, {"name": "b", "env": [{"name": "X", "value": "1"}]}],
        ephemeralContainers=[{"name": "e"}],
    )
    spec = patched(given, review(review_of(given)))["spec"]
    assert spec["initContainers"] == [{"name": "i", "env": [INJECTED]}]
    assert spec["containers"][0] == {"name": "a", "env": [INJECTED]}
    assert spec["containers"][1]["env"] == [{"name": "X", "value": "1"}, INJECTED]
    assert spec["ephemeralContainers"] == [{"name": "e"}]


@pytest.mark.parametrize(
    "entry",
    [
        {"name": VARIABLE, "value": "set"},
        {"name": VARIABLE, "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
    ],
)
def test_an_existing_variable_is_kept(entry: JsonObject) -> None:
    given = pod(containers=[{"name": "a"}, {"name": "b", "env": [entry]}])
    containers = patched(given, review(review_of(given)))["spec"]["containers"]
    assert containers == [{"name": "a", "env": [INJECTED]}, {"name": "b", "env": [entry]}]


@pytest.mark.parametrize(("value", "desired"), [("disable", False), ("false", True), ("", True)])
def test_pods_and_namespaces_opt_out_by_exactly_one_value(value: str, *, desired: bool) -> None:
    assert selected({INJECT: value}, {}) is desired
    assert selected({}, {INJECT: value}) is desired


def test_pods_wait_at_most_two_seconds_for_an_answer() -> None:
    (entry,) = registrations(Installation("target"))
    assert (entry.failure_policy, entry.timeout_seconds) == ("Ignore", 2)


def test_a_second_pass_adds_nothing() -> None:
    given = pod(initContainers=[{"name": "i"}])
    again = review(review_of(patched(given, review(review_of(given)))))
    assert (again.edits, again.because) == ((), f"all containers already set {VARIABLE}")


def test_an_empty_host_is_never_injected() -> None:
    with pytest.raises(ValueError, match=r"kubernetesServiceHost\.host is required"):
        KubernetesServiceHost("")
