"""Seccomp profiles of pods: spec 12 §10."""

import pytest

from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.seccomp_profile import registrations, review
from tests.support.reviews import patched, pod, review_of

DEFAULT = {"type": "RuntimeDefault"}


@pytest.mark.parametrize("kind", ["Unconfined", "Localhost", "RuntimeDefault"])
def test_an_explicit_profile_is_kept(kind: str) -> None:
    verdict = review(review_of(pod(securityContext={"seccompProfile": {"type": kind}})))
    assert (verdict.allowed, verdict.edits) == (True, ())
    assert verdict.because == f"the pod names the profile {kind}"


def test_a_pod_with_the_skip_label_is_not_sent() -> None:
    (entry,) = registrations(Installation("target"))
    skip = {"key": "seccompprofile.resources.gardener.cloud/skip", "operator": "DoesNotExist"}
    assert skip in entry.object_selector["matchExpressions"]


def test_other_fields_of_the_security_context_are_kept() -> None:
    given = pod(securityContext={"runAsUser": 3})
    changed = patched(given, review(review_of(given)))
    assert changed["spec"]["securityContext"] == {"runAsUser": 3, "seccompProfile": DEFAULT}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"securityContext": None},
        {"securityContext": {"seccompProfile": None}},
        {"securityContext": {"seccompProfile": {"type": ""}}},
    ],
)
def test_a_pod_without_a_profile_gets_the_runtime_default(spec: JsonObject) -> None:
    given = pod(**spec)
    changed = patched(given, review(review_of(given)))
    assert changed["spec"]["securityContext"] == {"seccompProfile": DEFAULT}
    assert review(review_of(changed)).edits == ()


def test_profiles_of_containers_are_ignored() -> None:
    container = {"name": "a", "securityContext": {"seccompProfile": {"type": "Unconfined"}}}
    given = pod(containers=[container])
    changed = patched(given, review(review_of(given)))
    assert changed["spec"]["securityContext"] == {"seccompProfile": DEFAULT}
    assert changed["spec"]["containers"] == [container]


def test_only_creations_are_changed() -> None:
    assert review(review_of(pod(), "UPDATE")).edits == ()
    assert review(review_of(pod(), "DELETE")).allowed


def test_a_pod_for_windows_gets_no_profile_which_would_make_it_invalid() -> None:
    verdict = review(review_of(pod(os={"name": "windows"})))
    assert (verdict.allowed, verdict.edits) == (True, ())
    given = pod(os={"name": "linux"})
    assert patched(given, review(review_of(given)))["spec"]["securityContext"] == {
        "seccompProfile": DEFAULT
    }
