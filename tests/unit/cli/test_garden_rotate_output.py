"""The output of `pergola garden rotate`."""

from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from pergola.cli.garden.rotate import WrongOptions, rotate
from pergola.cli.garden.rotate_text import announced_data, announcement, data, table
from pergola.operator.rotation.ages import Age
from pergola.operator.rotation.requested import Request


def test_the_effects_are_printed_before_the_request() -> None:
    requested = Request("rotate-ca-complete", ("old certificates are no longer accepted",))
    assert announcement("local", requested, ("gone",)).splitlines() == [
        "rotate-ca-complete for Garden local:",
        "  old certificates are no longer accepted",
        "  skipped, and without access afterwards: gone",
    ]
    assert announced_data("local", requested, ("gone",)) == {
        "garden": "local",
        "operation": "rotate-ca-complete",
        "effects": ["old certificates are no longer accepted"],
        "skippedSeeds": ["gone"],
    }


def test_the_phase_of_each_rotation_and_the_age_of_credentials_are_printed() -> None:
    authorities = {"phase": "Prepared", "lastInitiationTime": "2026-01-01T00:00:00Z"}
    observability = {"lastCompletionTime": "2026-02-01T00:00:00Z"}
    rotation = {"certificateAuthorities": authorities, "observability": observability}
    garden = {"status": {"credentials": {"rotation": rotation}}}
    out = StringIO()
    ages = [Age("ca", timedelta(days=400)), Age("ca-client", timedelta(hours=3))]
    Console(file=out, width=100).print(table(garden, ages))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert lines == [
        "rotation phase since",
        "ca Prepared 2026-01-01T00:00:00Z",
        "service-account-key never rotated",
        "etcd-encryption-key never rotated",
        "observability rotated 2026-02-01T00:00:00Z",
        "workload-identity-key never rotated",
        "",
        "credential age",
        "ca 400 days",
        "ca-client 3 hours",
    ]
    found = data(garden, ages)
    assert found["credentials"] == [
        {"credential": "ca", "ageSeconds": 400 * 24 * 3600},
        {"credential": "ca-client", "ageSeconds": 3 * 3600},
    ]
    never = {"phase": "never rotated", "since": None}
    assert found["rotations"] == [
        {"rotation": "ca", "phase": "Prepared", "since": "2026-01-01T00:00:00Z"},
        {"rotation": "service-account-key", **never},
        {"rotation": "etcd-encryption-key", **never},
        {"rotation": "observability", "phase": "rotated", "since": "2026-02-01T00:00:00Z"},
        {"rotation": "workload-identity-key", **never},
    ]


def test_a_rotation_cannot_be_started_and_completed_at_once() -> None:
    with pytest.raises(WrongOptions, match="use --start or --complete"):
        rotate(start=True, complete=True)
    with pytest.raises(WrongOptions, match="use it with --start or --complete"):
        rotate(skip_seed=["a"])


def test_a_rotation_that_is_followed_has_no_data() -> None:
    with pytest.raises(WrongOptions, match="use -o json with --no-wait or --dry-run"):
        rotate(start=True, output="json")
