"""The readiness of extension resources, in the order of the checks (spec 40 §4.1)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.caller.readiness import (
    GONE,
    OTHER_REQUEST_SECONDS,
    UNSURE_SECONDS,
    deletion,
    is_pending,
    is_settled,
    migration,
    readiness,
)
from pergola.extension_api.errors import Code

ASKED = "2026-03-01T10:00:00.900000000Z"
DONE: JsonObject = {
    "type": "Reconcile",
    "state": "Succeeded",
    "progress": 100,
    "description": "Successfully reconciled Network",
    "lastUpdateTime": "2026-03-01T10:00:05Z",
}


def network(annotations: dict[str, str] | None = None, **status: Any) -> JsonObject:
    """Return a Network that is ready except for these changes."""
    said = {"observedGeneration": 3, "lastOperation": DONE, "observedTimestamp": ASKED} | status
    return {
        "metadata": {
            "name": "demo",
            "namespace": "shoot--a--demo",
            "generation": 3,
            "annotations": {"gardener.cloud/timestamp": ASKED} | (annotations or {}),
        },
        "status": {name: value for name, value in said.items() if value is not None},
    }


def without_echo(updated: str) -> JsonObject:
    return network(observedTimestamp=None, lastOperation={**DONE, "lastUpdateTime": updated})


@pytest.mark.parametrize(
    ("obj", "problem"),
    [
        (None, GONE),
        (
            network(lastError={"description": "no such pool"}),
            "error during reconciliation: no such pool",
        ),
        (network(observedGeneration=2), "observed generation outdated (2/3)"),
        (network(observedGeneration=None), "observed generation outdated (0/3)"),
        (
            network({"gardener.cloud/operation": "reconcile"}),
            'gardener operation "reconcile" is not yet picked up by controller',
        ),
        (network(lastOperation=None), "extension did not record a last operation yet"),
        (
            network(lastOperation={**DONE, "state": "Processing"}),
            "extension state is not succeeded but Processing",
        ),
        (
            without_echo("2026-03-01T09:59:59Z"),
            f"extension is not reconciled yet: asked at {ASKED}, done at 2026-03-01T09:59:59Z",
        ),
        (
            network({"gardener.cloud/timestamp": "yesterday"}, observedTimestamp=None),
            'annotation "gardener.cloud/timestamp" is not an RFC 3339 time: "yesterday"',
        ),
        (network(), ""),
    ],
)
def test_problems_use_the_words_of_the_contract(obj: JsonObject | None, problem: str) -> None:
    assert readiness(obj).problem == problem


def test_checks_run_in_order() -> None:
    faults: list[tuple[str, JsonObject]] = [
        ("error during", network(lastError={"description": "x"}, observedGeneration=1)),
        ("observed gen", network({"gardener.cloud/operation": "restore"}, observedGeneration=1)),
        ("gardener ope", network({"gardener.cloud/operation": "restore"}, lastOperation=None)),
    ]
    for start, obj in faults:
        assert readiness(obj).problem.startswith(start)
    other = network(lastError={"description": "x"})
    assert readiness(other, "2026-03-01T10:00:01Z").problem == (
        f'annotation "gardener.cloud/timestamp" is "{ASKED}", not "2026-03-01T10:00:01Z" as it '
        "was set"
    )


def test_an_error_of_the_extension_has_its_codes_and_is_marked() -> None:
    codes = ["ERR_CONFIGURATION_PROBLEM", "ERR_OF_SOMEBODY", "ERR_CONFIGURATION_PROBLEM"]
    verdict = readiness(network(lastError={"description": "x", "codes": codes}))
    assert verdict.is_error
    assert verdict.codes == (Code.CONFIGURATION_PROBLEM,)
    assert not readiness(network(observedGeneration=1)).is_error


def test_an_echo_of_the_request_confirms_the_success() -> None:
    assert readiness(network(), ASKED).unsure == 0
    # Two requests within one second: only the echo distinguishes them.
    early = network(lastOperation={**DONE, "lastUpdateTime": "2026-03-01T10:00:00Z"})
    assert readiness(early).unsure == 0


def test_a_success_in_the_same_second_without_an_echo_is_accepted_after_a_delay() -> None:
    verdict = readiness(without_echo("2026-03-01T10:00:00Z"))
    assert (verdict.problem, verdict.unsure) == ("", UNSURE_SECONDS)


def test_a_success_with_the_echo_of_another_request_is_accepted_only_after_a_long_delay() -> None:
    verdict = readiness(network(observedTimestamp="2026-03-01T10:00:00.100000000Z"))
    assert (verdict.problem, verdict.unsure) == ("", OTHER_REQUEST_SECONDS)


def test_an_object_without_a_timestamp_needs_no_fresh_operation() -> None:
    obj = without_echo("2020-01-01T00:00:00Z")
    del obj["metadata"]["annotations"]
    assert readiness(obj) == readiness(network())


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ("Succeeded", 'gardener operation "migrate" is not yet picked up by controller'),
        ("Processing", "last operation is not a succeeded Migrate: Migrate is Processing"),
    ],
)
def test_the_migration_of_an_earlier_request_does_not_count(state: str, problem: str) -> None:
    asked = network(lastOperation={**DONE, "type": "Migrate", "state": state})
    asked["metadata"]["annotations"] = {"gardener.cloud/operation": "migrate"}

    assert migration(asked).problem == problem


def test_a_migration_is_done_after_a_successful_migrate_or_without_an_operation() -> None:
    assert migration(None).problem == ""
    assert migration(network(lastOperation={**DONE, "type": "Migrate"})).problem == ""
    assert migration(network()).problem == (
        "last operation is not a succeeded Migrate: Reconcile is Succeeded"
    )
    pending = network({"gardener.cloud/operation": "migrate"})
    assert migration(pending).problem.startswith('gardener operation "migrate" is not yet')
    failed = migration(network(lastError={"description": "x"}))
    assert (failed.problem, failed.is_error) == ("error during migration: x", False)


def test_the_cause_that_blocks_a_deletion_is_reported() -> None:
    assert deletion(None).problem == ""
    assert deletion(network()).problem == "its deletion was not requested"
    going = network()
    going["metadata"]["deletionTimestamp"] = "2026-03-01T10:00:06Z"
    assert deletion(going).problem == "it is being deleted"
    going["metadata"]["finalizers"] = ["extensions.gardener.cloud/network"]
    assert deletion(going).problem == "it is held by finalizer extensions.gardener.cloud/network"
    error = {"description": "still there", "codes": ["ERR_CLEANUP_CLUSTER_RESOURCES"]}
    failed = deletion(network(lastError=error))
    assert (failed.problem, failed.codes) == ("still there", (Code.CLEANUP,))
    assert not failed.is_error


def test_a_request_is_pending_until_its_annotation_is_gone() -> None:
    assert is_pending(network({"gardener.cloud/operation": "reconcile"}))
    assert not is_pending(network())


@pytest.mark.parametrize(
    ("obj", "seconds_later", "settled"),
    [
        (network(), 0, True),
        (network({"gardener.cloud/operation": "reconcile"}), 600, False),
        (network(lastError={"description": "no such pool"}), 600, False),
        (without_echo("2026-03-01T10:00:05Z"), 1, False),
        (without_echo("2026-03-01T10:00:05Z"), 3, True),
        (network(observedTimestamp="2026-03-01T09:00:00Z"), 3, False),
        (network(observedTimestamp="2026-03-01T09:00:00Z"), 40, True),
    ],
)
def test_a_success_completes_a_request_unless_another_request_may_have_caused_it(
    obj: JsonObject, seconds_later: int, settled: bool
) -> None:
    done = datetime(2026, 3, 1, 10, 0, 5, tzinfo=UTC)
    assert is_settled(obj, done + timedelta(seconds=seconds_later)) is settled
