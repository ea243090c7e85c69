"""The changes that start a reconciliation: spec 40 §2.2."""

import pytest

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.extension_api.predicates import Predicate, needs_run, snapshot

TYPE = "calico"
A = Predicate(TYPE)
B = Predicate(TYPE, ignores_annotation=True)


def network(
    operation: str = "",
    *,
    at: str = "t0",
    deleting: bool = False,
    state: str = "Succeeded",
    generation: int = 1,
    uid: str = "u",
    **spec: str,
) -> JsonObject:
    metadata: JsonObject = {"uid": uid, "generation": generation}
    if operation:
        metadata["annotations"] = {marks.OPERATION: operation, marks.TIMESTAMP: at}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status: JsonObject = {"lastOperation": {"type": "Reconcile", "state": state}} if state else {}
    return {"metadata": metadata, "spec": {"type": TYPE, **spec}, "status": status}


DONE = network()


@pytest.mark.parametrize(
    ("classes", "of_class", "expected"),
    [
        ((), None, True),
        ((), "", True),
        ((), "shoot", True),
        ((), "garden", False),
        (("garden", "seed"), "garden", True),
        (("garden", "seed"), None, False),
    ],
)
def test_the_class_is_shoot_by_default(
    classes: tuple[str, ...], of_class: str | None, expected: bool
) -> None:
    obj = network()
    if of_class is not None:
        obj["spec"]["class"] = of_class
    assert Predicate(TYPE, classes).is_responsible(snapshot(obj)) is expected


def test_resources_of_another_type_are_ignored() -> None:
    other = network("reconcile", type="cilium")
    for predicate in (A, B):
        assert not predicate.appeared(snapshot(other))
        assert not predicate.changed(
            snapshot(network(type="cilium", generation=0)), snapshot(other)
        )


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (network("reconcile"), True),
        (network("restore"), True),
        (network("migrate"), True),
        (network("wait-for-state"), False),
        (network(deleting=True), True),
        (network(state=""), True),
        (network(state="Processing"), True),
        (network(state="Error"), True),
        (DONE, False),
    ],
)
def test_pending_and_unfinished_work_is_resumed_at_the_start(
    obj: JsonObject, expected: bool
) -> None:
    assert A.appeared(snapshot(obj)) is expected
    assert needs_run(snapshot(obj)) is expected
    assert B.appeared(snapshot(obj))


@pytest.mark.parametrize(
    ("operation", "timestamp", "observed", "expected"),
    [
        ("", "t1", "t0", True),
        ("", "t0", "t0", False),
        ("", "t0", "", False),
        ("", "", "t0", False),
        ("wait-for-state", "t1", "t0", False),
    ],
)
def test_an_accepted_request_that_did_not_begin_is_resumed_at_the_start(
    operation: str, timestamp: str, observed: str, expected: bool
) -> None:
    obj = network()
    obj["metadata"]["annotations"] = {marks.OPERATION: operation, marks.TIMESTAMP: timestamp}
    obj["status"]["observedTimestamp"] = observed
    assert A.appeared(snapshot(obj)) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (DONE, network("reconcile"), True),
        (DONE, network("restore"), True),
        (DONE, network("migrate"), True),
        (network("wait-for-state"), network("restore"), True),
        (DONE, network("wait-for-state"), False),
        # The same operation at another time is another request.
        (network("migrate"), network("migrate", at="t1"), True),
        (network("reconcile"), network("reconcile", generation=2), True),
        # The controller's own writes.
        (network("migrate", state="Succeeded"), network("migrate", state="Processing"), False),
        (network("reconcile"), DONE, False),
        # A plain change of the spec.
        (DONE, network(generation=2, podCIDR="10.0.0.0/8"), False),
        (DONE, network(deleting=True), True),
        (DONE, network(deleting=True, state="Error"), True),
        (network(deleting=True), network(deleting=True), True),
        (network(deleting=True), network(deleting=True, state="Processing"), False),
        # Another object of the same name, after events were missed.
        (network(uid="before"), network(state=""), True),
        (network(uid="before"), DONE, False),
    ],
)
def test_with_annotations_only_a_request_or_a_deletion_counts(
    old: JsonObject, new: JsonObject, expected: bool
) -> None:
    assert A.changed(snapshot(old), snapshot(new)) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (DONE, network(generation=2), True),
        (DONE, network("reconcile"), False),
        (DONE, network(state="Error"), False),
    ],
)
def test_without_annotations_only_a_generation_counts(
    old: JsonObject, new: JsonObject, expected: bool
) -> None:
    assert B.changed(snapshot(old), snapshot(new)) is expected


def test_a_malformed_resource_is_ignored() -> None:
    seen = snapshot({"metadata": {"annotations": {marks.OPERATION: 1}}, "spec": {"type": 2}})
    assert not A.is_responsible(seen)
    assert not seen.request.is_trigger
