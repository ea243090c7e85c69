"""The progress of a landscape's objects, and the examples that it is made of."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.cli.up.landscape import summary
from pergola.kube.yaml import parse_documents
from pergola.sandbox.landscape import Reconciliation, is_reconciled, succeeded
from pergola.sandbox.landscape.objects import distant_window
from pergola.shipped import EXAMPLES

DONE: JsonObject = {"state": "Succeeded", "progress": 100, "description": "reconciled"}
TRUE: JsonObject = {"type": "GardenletReady", "status": "True"}
FALSE: JsonObject = {"type": "ExtensionsReady", "status": "False"}


def state(generation: int = 1, **status: Any) -> Reconciliation:
    return Reconciliation({"metadata": {"generation": generation}, "status": status})


@pytest.mark.parametrize(
    ("found", "reconciled", "healthy"),
    [
        (Reconciliation({}), False, False),
        (state(), False, False),
        (state(observedGeneration=1), False, False),
        (state(observedGeneration=1, lastOperation=DONE), True, False),
        (state(observedGeneration=1, lastOperation=DONE, conditions=[TRUE]), True, True),
        (state(observedGeneration=1, lastOperation=DONE, conditions=[TRUE, FALSE]), True, False),
        (state(2, observedGeneration=1, lastOperation=DONE, conditions=[TRUE]), False, False),
        (
            state(
                observedGeneration=1,
                lastOperation={**DONE, "state": "Processing"},
                conditions=[TRUE],
            ),
            False,
            False,
        ),
    ],
)
def test_success_needs_the_current_generation_and_true_conditions(
    found: Reconciliation, *, reconciled: bool, healthy: bool
) -> None:
    assert (is_reconciled(found), succeeded(found)) == (reconciled, healthy)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (Reconciliation({}), "waiting until it is registered and accepted"),
        (state(lastOperation=DONE, conditions=[TRUE]), "100 %  reconciled"),
        (state(lastOperation=DONE, conditions=[TRUE, FALSE]), "100 %  waiting for ExtensionsReady"),
        (
            state(
                lastOperation={"state": "Error", "progress": 7, "description": "Deploying"},
                lastErrors=[{"description": "quota exceeded"}],
            ),
            "  7 %  Deploying; failed: quota exceeded",
        ),
    ],
)
def test_one_line_says_what_is_awaited_and_what_failed(found: Reconciliation, line: str) -> None:
    assert summary(found) == line


def test_the_examples_refer_to_each_other() -> None:
    files = (EXAMPLES / "landscape").glob("*.yaml")
    objects: list[Any] = [
        each.value for file in files for each in parse_documents(file.read_text())
    ]
    named = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    for shoot in (obj for obj in objects if obj["kind"] == "Shoot"):
        assert ("CloudProfile", shoot["spec"]["cloudProfile"]["name"]) in named
        assert ("Namespace", shoot["metadata"]["namespace"]) in named
        binding = shoot["spec"].get("credentialsBindingName")
        assert binding is None or ("CredentialsBinding", binding) in named


@pytest.mark.parametrize(
    ("hour", "window"),
    [
        (0, ("110000+0000", "120000+0000")),
        (10, ("210000+0000", "220000+0000")),
        (12, ("230000+0000", "000000+0000")),
        (14, ("010000+0000", "020000+0000")),
    ],
)
def test_no_maintenance_interrupts_a_shoot(hour: int, window: tuple[str, str]) -> None:
    here = timezone(timedelta(hours=1))

    found = distant_window(datetime(2026, 12, 31, hour, 59, tzinfo=here))

    assert (found["begin"], found["end"]) == window
