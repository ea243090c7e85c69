"""The pure parts of explanations: advice, the last Event, and the last line of a log."""

import pytest

from pergola.api.objects import JsonObject
from pergola.why.health.advice import about_claim, about_creation, about_scheduling
from pergola.why.health.details import Details, problem_of
from pergola.why.reading import last_event, last_line


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("0/2 nodes: 1 Insufficient memory, 2 Insufficient cpu.", "free cpu and memory"),
        ("no nodes available to schedule pods", "add nodes"),
        ('persistentvolumeclaim "data" not found', "PersistentVolumeClaim"),
        ("0/1 nodes: 1 node(s) didn't match Pod's node affinity/selector", "label nodes"),
        ("0/1 nodes: 1 node(s) had untolerated taint {a: b}", "remove the taint"),
        ("something new", ""),
    ],
)
def test_advice_about_scheduling_follows_from_the_message(message: str, words: str) -> None:
    assert words in about_scheduling(message)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ('pods "a" is forbidden: exceeded quota: small', "raise the ResourceQuota"),
        ('error looking up service account a/b: serviceaccount "b" not found', "ServiceAccount"),
        ('violates PodSecurity "restricted"', "pod-security.kubernetes.io/enforce"),
        ('failed calling webhook "x"', "repair the webhook"),
        ("something new", ""),
    ],
)
def test_advice_about_pods_that_cannot_be_created(message: str, words: str) -> None:
    assert words in about_creation(message)


def test_advice_about_a_claim_names_the_storage_class() -> None:
    claim: JsonObject = {"spec": {"storageClassName": "fast"}}
    missing = 'ProvisioningFailed: storageclass.storage.k8s.io "fast" not found'
    assert "create StorageClass fast" in about_claim(claim, missing)
    assert "provisioner of StorageClass fast" in about_claim(claim, "")
    assert "default" in about_claim({"spec": {}}, "")


def test_the_last_event_is_the_newest_warning() -> None:
    def event(reason: str, kind: str, time: str) -> JsonObject:
        return {"reason": reason, "type": kind, "message": "a\n b", "lastTimestamp": time}

    events = [
        event("Old", "Warning", "2026-01-01T00:00:00Z"),
        event("New", "Warning", "2026-01-02T00:00:00Z"),
        event("Newest", "Normal", "2026-01-03T00:00:00Z"),
    ]
    assert last_event(events) == "New: a b"
    assert last_event([]) == ""


def test_the_last_line_of_a_log_has_no_control_characters() -> None:
    assert last_line(b"one\n\x1b[31mtwo\x1b[0m\n\n") == "[31mtwo [0m"
    assert last_line(b"") == ""


def test_the_next_step_belongs_to_the_deepest_first_cause() -> None:
    pod = problem_of("Pod", "x", Details(advice="read its log"))
    workload = problem_of("Deployment", "y", Details((pod,), "look at it"))
    found = problem_of("ManagedResource", "z", Details((workload,)))
    assert found.next_step == "read its log"
