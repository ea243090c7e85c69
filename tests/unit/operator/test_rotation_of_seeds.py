"""The progress of an operation on all Seeds (spec 20 §17.2, spec 21 §10.5).

Pure functions of their annotations.
"""

from datetime import UTC, datetime

import pytest

from pergola.api.objects import JsonObject
from pergola.operator.rotation.seeds.propagation import outdated
from pergola.operator.rotation.seeds.standing import (
    NotRenewed,
    Request,
    SeedsBusy,
    requesting,
    skipped_in,
    standing_of,
)

OPERATION = "gardener.cloud/operation"
REQUEST = Request("renew-kubeconfig", "2026-01-02T03:04:05Z")
RECORD = "rotation.operator.gardener.cloud/renew-kubeconfig"
DONE = {RECORD: REQUEST.rotation}
PENDING = {OPERATION: "renew-kubeconfig"}
BUSY = {OPERATION: "reconcile"}


def seed(name: str, annotations: dict[str, str] | None = None) -> JsonObject:
    metadata = {"name": name, "resourceVersion": "7", "annotations": annotations or {}}
    return {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": metadata}


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({}, "unasked"),
        ({RECORD: "2025-01-02T03:04:05Z"}, "unasked"),
        (BUSY, "unasked"),
        (PENDING, "pending"),
        (PENDING | DONE, "pending"),
        (DONE, "done"),
        (DONE | BUSY, "done"),
    ],
)
def test_a_seed_has_finished_once_the_request_of_this_rotation_is_gone(
    annotations: dict[str, str], field: str
) -> None:
    standing = standing_of([seed("a", annotations)], REQUEST, ())
    counts = {
        "unasked": len(standing.unasked),
        "pending": len(standing.pending),
        "done": standing.done,
    }
    assert counts == {"unasked": 0, "pending": 0, "done": 0} | {field: 1}


def test_only_another_operation_on_an_unrequested_seed_blocks() -> None:
    seeds = [seed("a", BUSY), seed("b", BUSY | DONE), seed("c", PENDING), seed("d")]
    standing = standing_of(seeds, REQUEST, ())
    assert standing.busy == [("a", "reconcile")]
    assert str(SeedsBusy("Seed", standing.busy)) == (
        'error annotating seed a: already annotated with "gardener.cloud/operation: reconcile"'
    )


def test_an_excluded_seed_gets_no_request_and_is_not_awaited() -> None:
    garden = {
        "metadata": {"annotations": {"operator.gardener.cloud/skip-seeds-in-rotation": "b, a,"}}
    }
    assert skipped_in(garden) == {"a", "b"}
    assert skipped_in(None) == frozenset()
    standing = standing_of([seed("a", BUSY), seed("b", PENDING)], REQUEST, skipped_in(garden))
    assert (standing.unasked, standing.busy, standing.pending) == ([], [], [])
    assert standing.progress("Seeds") == "0 of 0 Seeds done; skipped: a, b"


def test_the_progress_lists_the_awaited_seeds() -> None:
    some = [seed("a", DONE), seed("b", PENDING), seed("c", PENDING)]
    standing = standing_of(some, REQUEST, ())
    assert standing.progress("Seeds") == "1 of 3 Seeds done, waiting for b, c"
    many = [seed(f"s{number}", PENDING) for number in range(8)]
    standing = standing_of(many, REQUEST, ())
    assert standing.progress("Seeds").endswith("waiting for s0, s1, s2, s3, s4 and 3 more")
    assert str(NotRenewed("Seed", "gardenlet kubeconfig", standing)).startswith(
        'renewing "gardenlet kubeconfig" secrets for seed "s0", "s1", "s2", "s3", "s4" and 3 more '
        "is not yet completed"
    )


def test_a_request_is_one_patch_with_its_record_and_the_resource_version() -> None:
    assert requesting(seed("a"), REQUEST) == {
        "metadata": {"annotations": PENDING | DONE, "resourceVersion": "7"}
    }


@pytest.mark.parametrize(
    ("labels", "is_outdated"),
    [
        ({}, False),
        ({"last-rotation-initiation-time": ""}, True),
        ({"last-rotation-initiation-time": "1767323044"}, True),
        ({"last-rotation-initiation-time": "1767323045"}, False),
        ({"last-rotation-initiation-time": "1767323046"}, False),
    ],
)
def test_a_namespace_has_the_new_password_once_its_secret_is_newer_than_the_rotation(
    labels: dict[str, str], *, is_outdated: bool
) -> None:
    secret = {"metadata": {"namespace": "seed-a", "name": "x", "labels": labels}}
    desired = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert outdated(["a", "b"], [secret], desired) == (["a"] if is_outdated else [])
