"""The choice of the operation on an extension resource: spec 40 §2.3, steps 5 and 6."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api import marks
from pergola.api.objects import JsonObject, annotations_of, finalizers_of
from pergola.extension_api.kinds import finalizer_of
from pergola.extension_api.predicates import Request, request_of
from pergola.extensions.lifecycle.operation import (
    Operation,
    acceptance,
    completion,
    next_operation,
    operation_of,
    waits_for_state,
)
from pergola.kube.patches import apply_merge_patch

OWN = finalizer_of("Network")
OTHER = "example.org/other"


def network(
    operation: str = "",
    last: tuple[str, str] | None = None,
    *,
    deleting: bool = False,
    finalizers: tuple[str, ...] = (OWN,),
) -> JsonObject:
    metadata: JsonObject = {"finalizers": list(finalizers), "annotations": {marks.TIMESTAMP: "t"}}
    if operation:
        metadata["annotations"][marks.OPERATION] = operation
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"lastOperation": dict(zip(("type", "state"), last, strict=True))} if last else {}
    return {"metadata": metadata, "status": status}


def test_the_finalizer_has_the_name_of_the_kind() -> None:
    assert OWN == "extensions.gardener.cloud/network"
    assert finalizer_of("ControlPlane") == "extensions.gardener.cloud/controlplane"
    assert finalizer_of("OperatingSystemConfig") == (
        "extensions.gardener.cloud/operatingsystemconfigs"
    )


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (network("migrate", deleting=True), "Migrate"),
        (network("restore", deleting=True), "Delete"),
        (network("restore"), "Restore"),
        (network("reconcile"), "Create"),
        (network(), "Create"),
        (network("reconcile", ("Create", "Error")), "Create"),
        (network("", ("Create", "Processing")), "Create"),
        (network("", ("Restore", "Error")), "Restore"),
        (network("", ("Migrate", "Error")), "Migrate"),
        (network("reconcile", ("Create", "Succeeded")), "Reconcile"),
        (network("reconcile", ("Restore", "Succeeded")), "Reconcile"),
        (network("reconcile", ("Reconcile", "Error")), "Reconcile"),
        (network("reconcile", ("Delete", "Error")), "Reconcile"),
    ],
)
def test_the_operation_follows_from_the_state(obj: JsonObject, expected: str) -> None:
    assert operation_of(obj) == expected
    assert next_operation(obj, OWN) == expected


@pytest.mark.parametrize(
    "obj",
    [
        network("", ("Migrate", "Succeeded")),
        network("reconcile", ("Migrate", "Succeeded")),
        network("", ("Migrate", "Succeeded"), deleting=True),
        network("", ("Reconcile", "Succeeded"), deleting=True, finalizers=(OTHER,)),
    ],
)
def test_migrated_and_untouched_objects_are_skipped(obj: JsonObject) -> None:
    assert next_operation(obj, OWN) is None


@pytest.mark.parametrize("asked", ["migrate", "restore"])
def test_a_migrated_object_can_be_migrated_again_and_restored(asked: str) -> None:
    assert next_operation(network(asked, ("Migrate", "Succeeded")), OWN) == asked.capitalize()


def test_waiting_for_the_state_is_recognized() -> None:
    assert waits_for_state(network("wait-for-state"))
    assert not waits_for_state(network("restore"))


def test_accepting_removes_the_request_and_adds_the_finalizer_in_one_write() -> None:
    obj = network("reconcile", finalizers=(OTHER,))
    assert acceptance(obj, Operation.CREATE, OWN) == {
        "annotations": {marks.OPERATION: None},
        "finalizers": [OTHER, OWN],
    }


@pytest.mark.parametrize(
    ("obj", "operation", "expected"),
    [
        (network("restore", finalizers=()), Operation.RESTORE, {"finalizers": [OWN]}),
        (network("migrate", finalizers=()), Operation.MIGRATE, {}),
        (network(deleting=True), Operation.DELETE, {}),
        (network(), Operation.RECONCILE, {}),
        (network("reconcile", finalizers=()), None, {"annotations": {marks.OPERATION: None}}),
    ],
)
def test_accepting_writes_only_missing_changes(
    obj: JsonObject, operation: Operation | None, expected: JsonObject
) -> None:
    assert acceptance(obj, operation, OWN) == expected


@pytest.mark.parametrize(
    ("obj", "operation", "expected"),
    [
        (network("reconcile"), Operation.RECONCILE, {}),
        (network(), Operation.DELETE, {"finalizers": []}),
        (network(finalizers=(OTHER, OWN)), Operation.DELETE, {"finalizers": [OTHER]}),
        (network(finalizers=(OTHER,)), Operation.DELETE, {}),
        (network("restore"), Operation.RESTORE, {"annotations": {marks.OPERATION: None}}),
        (
            network("migrate", finalizers=(OTHER, OWN)),
            Operation.MIGRATE,
            {"finalizers": [], "annotations": {marks.OPERATION: None}},
        ),
        (network("", ("Migrate", "Error")), Operation.MIGRATE, {"finalizers": []}),
    ],
)
def test_completing_removes_the_kept_request_and_finalizer(
    obj: JsonObject, operation: Operation, expected: JsonObject
) -> None:
    assert completion(obj, operation, OWN, request_of(obj)) == expected


def test_a_newer_request_is_kept() -> None:
    obj = network("migrate")
    assert completion(obj, Operation.MIGRATE, OWN, Request("migrate", "before")) == {
        "finalizers": []
    }


states = st.none() | st.tuples(
    st.sampled_from([str(operation) for operation in Operation]),
    st.sampled_from(["Processing", "Error", "Succeeded"]),
)
objects = st.builds(
    network,
    st.sampled_from(["", "reconcile", "migrate", "restore"]),
    states,
    deleting=st.booleans(),
    finalizers=st.sampled_from([(), (OWN,), (OTHER,), (OTHER, OWN)]),
)


@given(objects)
def test_after_an_operation_nothing_remains_to_be_accepted_or_completed(obj: JsonObject) -> None:
    operation, request = next_operation(obj, OWN), request_of(obj)
    metadata = apply_merge_patch(obj["metadata"], acceptance(obj, operation, OWN))
    accepted = {**obj, "metadata": metadata}
    assert annotations_of(accepted).get(marks.OPERATION) != "reconcile"
    if operation is None:
        return
    assert next_operation(accepted, OWN) == operation
    assert acceptance(accepted, operation, OWN) == {}
    patch = completion(accepted, operation, OWN, request)
    done = {**accepted, "metadata": apply_merge_patch(metadata, patch)}
    assert completion(done, operation, OWN, request) == {}
    assert (OWN in finalizers_of(done)) is (operation not in ("Delete", "Migrate"))
    assert annotations_of(done).get(marks.OPERATION) in (
        (None,) if operation != "Delete" else (None, "restore")
    )
