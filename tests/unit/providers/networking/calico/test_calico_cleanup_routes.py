"""The script that removes routes of a former overlay, run with an `ip` that records its calls."""

import subprocess
from pathlib import Path

import pytest

from pergola.providers.networking.calico.render.node_helpers import script

DEVICES = ("tunl0", "vxlan.calico", "vxlan-v6.calico")
BIRD, FELIX = "12", "80"


def commands(directory: Path, backend: str, *, fails: bool = False) -> list[str]:
    """Return the arguments of the script's calls of `ip`."""
    notes = directory / "notes"
    command = directory / "ip"
    command.write_text(f'#!/bin/sh\necho "$*" >> {notes}\nexit {int(fails)}\n')
    command.chmod(0o755)
    subprocess.run(
        ["/bin/sh", "-c", script("cleanup_routes")],
        env={"PATH": f"{directory}:/usr/bin:/bin", "CALICO_BACKEND": backend},
        check=True,
        timeout=30,
    )
    return notes.read_text().splitlines()


@pytest.mark.parametrize("backend", ["bird", "none", "vxlan"])
def test_routes_over_tunnels_are_removed_for_both_families(tmp_path: Path, backend: str) -> None:
    called = commands(tmp_path, backend)
    for family in ("-4", "-6"):
        for device in DEVICES:
            for protocol in (BIRD, FELIX):
                assert f"{family} route flush dev {device} proto {protocol}" in called


def test_tunnels_stay_for_nodes_that_have_not_restarted_yet(tmp_path: Path) -> None:
    for backend in ("bird", "none", "vxlan"):
        assert not any(call.startswith("link") for call in commands(tmp_path, backend))


def test_routes_that_bird_wrote_on_any_device_are_removed_once_it_does_not_run(
    tmp_path: Path,
) -> None:
    everywhere = {f"{family} route flush proto {BIRD}" for family in ("-4", "-6")}
    assert everywhere <= set(commands(tmp_path, "none"))


def test_routes_are_kept_while_bird_runs(tmp_path: Path) -> None:
    assert not any(" flush proto" in call for call in commands(tmp_path, "bird"))


def test_a_node_without_tunnels_is_not_a_failure(tmp_path: Path) -> None:
    assert commands(tmp_path, "none", fails=True)
