import os
import shutil
from pathlib import Path

import pytest

from pergola.sandbox import binaries
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.node import requirements
from pergola.testing.shared import require_node

WHICH = shutil.which
MISSING_OF_KERNEL = requirements._missing_of_kernel


@pytest.fixture(autouse=True)
def everything_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/bin/{name}")
    monkeypatch.setattr(binaries, "present", lambda parts: {part: part for part in parts})
    monkeypatch.setattr(requirements, "_missing_of_kernel", list)


def test_a_machine_with_all_requirements_can_run_a_node() -> None:
    requirements.check()


def test_missing_root_permissions_and_packages_are_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name == "nft" else name)

    with pytest.raises(SandboxError) as error:
        requirements.check()

    assert str(error.value) == (
        "a node cannot run on this machine: it needs root (sudo); nft not found"
        " (apt-get install nftables)"
    )


def test_programs_that_only_root_has_in_its_path_are_not_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number, program in enumerate(requirements._PROGRAMS):
        folder = tmp_path / ("bin" if number else "sbin")
        folder.mkdir(exist_ok=True)
        (folder / program).touch(mode=0o755)
    monkeypatch.setattr(shutil, "which", WHICH)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(requirements, "_SYSTEM_FOLDERS", (str(tmp_path / "sbin"),))

    with pytest.raises(SandboxError, match="conntrack not found"):
        requirements.check()

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SandboxError) as error:
        requirements.check()
    assert str(error.value) == "a node cannot run on this machine: it needs root (sudo)"


def test_missing_kernel_features_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "_missing_of_kernel", MISSING_OF_KERNEL)
    monkeypatch.setattr(requirements, "_NAMESPACES", ("pid", "dream"))
    monkeypatch.setattr(requirements, "_file_systems", lambda: {"tmpfs"})
    monkeypatch.setattr(requirements, "_controllers", lambda: {"cpu", "cpuset"})

    with pytest.raises(SandboxError) as error:
        requirements.check()

    assert str(error.value) == (
        "a node cannot run on this machine: the kernel lacks namespaces: dream;"
        " the kernel lacks file systems: overlay;"
        " the kernel lacks cgroup controllers: memory, pids"
    )


def test_build_requirements_of_runc_apply_only_until_it_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: None if name == "pkg-config" else name)
    requirements.check()
    monkeypatch.setattr(binaries, "present", lambda parts: {})

    with pytest.raises(
        SandboxError, match=r"runc cannot be built \(apt-get install pkg-config lib"
    ):
        requirements.check()


def test_a_test_that_needs_a_node_is_skipped_without_one_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="it needs root"):
        require_node()

    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="it needs root"):
        require_node()
