"""The tasks of rotations: their position in the flow, and when they are skipped (spec 20 §12.2)."""

from itertools import pairwise
from typing import Any, Final
from unittest.mock import create_autospec

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.flow import Graph
from pergola.garden.components import task_names
from pergola.operator.reconcile import flows
from pergola.operator.rotation.access_tokens import RENEW
from pergola.operator.rotation.encryption import tasks as encryption
from pergola.operator.rotation.seeds import tasks as seeds
from pergola.operator.run.run import Run
from tests.support.garden import landscape

READY: Final = "Waiting until Gardener API server rolled out"
ON_SEEDS: Final = (
    seeds.RENEW_ACCESS,
    seeds.ACCESS,
    seeds.RENEW_TOKENS,
    seeds.TOKENS,
    seeds.RENEW_KUBECONFIGS,
    seeds.KUBECONFIGS,
)
SELF_HOSTED: Final = (seeds.RENEW_SELF_HOSTED, seeds.SELF_HOSTED_KUBECONFIGS)
OBSERVABILITY: Final = (seeds.PROPAGATED, seeds.RECONCILE_SEEDS)
ENCRYPTION: Final = (encryption.LABEL, encryption.SNAPSHOT, encryption.UNLABEL)


def graph(*patches: JsonObject, **attributes: Any) -> Graph:
    """Return the flow of a landscape."""
    run = create_autospec(Run, instance=True)
    run.current.return_value = landscape(*patches, **attributes)
    return flows.reconciliation(run, Key("", "garden"))


def in_phase(**phases: str) -> JsonObject:
    rotation: JsonObject = {name: {"phase": phase} for name, phase in phases.items()}
    return with_rotation(rotation)


def with_rotation(rotation: JsonObject) -> JsonObject:
    at_rest = {"resources": [], "provider": {"type": "aescbc"}}
    return {"status": {"credentials": {"rotation": rotation, "encryptionAtRest": at_rest}}}


def to_run(found: Graph) -> set[str]:
    names = (RENEW, *ON_SEEDS, *SELF_HOSTED, *OBSERVABILITY, *ENCRYPTION)
    return {name for name in names if found[name].why_skipped() is None}


def test_the_steps_on_seeds_are_strictly_sequential() -> None:
    found = graph()
    for before, after in pairwise(ON_SEEDS):
        assert before in found[after].after
    assert found[seeds.RECONCILE_SEEDS].after == (seeds.PROPAGATED, seeds.KUBECONFIGS)
    assert found[seeds.PROPAGATED].after == (task_names.REPLICATION,)


def test_every_step_is_retried_every_five_seconds_for_ten_minutes() -> None:
    for name in (*ON_SEEDS, *SELF_HOSTED, *OBSERVABILITY):
        task = graph()[name]
        assert (task.timeout, task.retry.first_seconds) == (600, 5)
    for name in (encryption.LABEL, encryption.UNLABEL):
        task = graph()[name]
        assert (task.timeout, task.retry.first_seconds) == (600, 30)


def test_tokens_are_renewed_before_the_connection_and_after_the_programs() -> None:
    found = graph()
    assert RENEW in found[task_names.CONNECTION].after
    assert {READY, "Deploying Gardener Scheduler", "Deploying Kubernetes Controller Manager"} <= {
        *found[RENEW].after
    }


def test_objects_are_rewritten_before_the_snapshot_and_unlabelled_after_it() -> None:
    found = graph()
    assert found[encryption.LABEL].after == (task_names.CONNECTION, READY)
    assert found[encryption.SNAPSHOT].after == (encryption.LABEL,)
    assert found[encryption.UNLABEL].after == (encryption.SNAPSHOT, task_names.CONNECTION, READY)


@pytest.mark.parametrize(
    ("phases", "names"),
    [
        ({}, set()),
        ({"serviceAccountKey": "Preparing"}, {RENEW, *ON_SEEDS[:2]}),
        ({"workloadIdentityKey": "Preparing"}, {*ON_SEEDS[2:4]}),
        ({"certificateAuthorities": "Preparing"}, {*ON_SEEDS[4:], *SELF_HOSTED}),
        ({"etcdEncryptionKey": "Preparing"}, {encryption.LABEL}),
        ({"etcdEncryptionKey": "Completing"}, {encryption.UNLABEL}),
        (dict.fromkeys(("serviceAccountKey", "certificateAuthorities"), "Prepared"), set()),
        (dict.fromkeys(("serviceAccountKey", "certificateAuthorities"), "Completing"), set()),
        (dict.fromkeys(("serviceAccountKey", "workloadIdentityKey"), "Completed"), set()),
    ],
)
def test_a_task_runs_in_the_phase_that_needs_it(phases: dict[str, str], names: set[str]) -> None:
    assert to_run(graph(in_phase(**phases))) == names


def test_seeds_are_reconciled_while_the_passwords_are_rotated() -> None:
    started: JsonObject = {"observability": {"lastInitiationTime": "2026-01-02T03:04:05Z"}}
    assert to_run(graph(with_rotation(started))) == {*OBSERVABILITY}
    done = {**started["observability"], "lastCompletionTime": "2026-01-02T03:05:05Z"}
    assert to_run(graph(with_rotation({"observability": done}))) == set()
    # Before Gardener 1.150 its controller manager generates the password of the Seeds.
    older = graph(with_rotation(started), gardener_version="v1.149.0")
    assert to_run(older) == {seeds.RECONCILE_SEEDS}


def test_a_snapshot_needs_a_backup() -> None:
    backup: JsonObject = {
        "provider": "a",
        "bucketName": "b",
        "secretRef": {"name": "c"},
        "region": "d",
    }
    with_backup: JsonObject = {"spec": {"virtualCluster": {"etcd": {"main": {"backup": backup}}}}}
    preparing = in_phase(etcdEncryptionKey="Preparing")
    assert to_run(graph(preparing, with_backup)) == {encryption.LABEL, encryption.SNAPSHOT}
