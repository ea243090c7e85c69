import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pergola.sandbox import directory
from pergola.sandbox.cluster import find, remove_crashed
from pergola.sandbox.errors import SandboxError


@pytest.fixture(autouse=True)
def _own_root(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("r")))


@pytest.fixture
def claimed() -> Iterator[int]:
    lock = directory.claim("one")
    assert lock is not None
    yield lock
    directory.give_up("one", lock)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_user_can_access_directories_and_files() -> None:
    path = directory.make("one")
    file = directory.write(path / "secret", "x")

    assert (mode(directory.root()), mode(path), mode(file)) == (0o700, 0o700, 0o600)


def test_a_root_readable_by_others_is_made_private() -> None:
    directory.root().chmod(0o755)

    assert mode(directory.root()) == 0o700


def test_a_root_that_is_a_link_is_rejected(tmp_path: Path) -> None:
    directory.root().rmdir()
    Path(os.environ["XDG_RUNTIME_DIR"], f"pergola-{os.getuid()}").symlink_to(tmp_path)

    with pytest.raises(SandboxError, match="belongs to another user"):
        directory.root()


@pytest.mark.usefixtures("claimed")
def test_a_name_has_one_owner() -> None:
    assert directory.is_claimed("one")
    assert directory.claim("one") is None
    assert not directory.is_claimed("two")


def test_a_released_name_is_free_and_leaves_nothing() -> None:
    lock = directory.claim("one")
    assert lock is not None
    directory.give_up("one", lock)

    assert not directory.is_claimed("one")
    assert list(directory.root().iterdir()) == []


@pytest.mark.usefixtures("claimed")
def test_leftovers_of_a_crashed_sandbox_are_removed_but_not_a_running_one() -> None:
    running, crashed = directory.make("one"), directory.make("two")
    directory.write(crashed / "state.json", '{"components": {"etcd": {"process": [1, 1]}}}')

    remove_crashed()

    assert running.exists()
    assert not crashed.exists()
    assert list(directory.names()) == ["one"]


def test_no_sandbox_is_found_before_one_is_started() -> None:
    assert find("one") is None


@pytest.mark.parametrize("name", ["", "Upper", "a/b", "..", "-a", "a" * 41, "a_b", "a\n"])
def test_a_name_unsuitable_as_a_file_name_is_rejected(name: str) -> None:
    with pytest.raises(SandboxError, match="cannot name a sandbox"):
        directory.directory_of(name)


def test_a_path_too_long_for_sockets_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 90)))

    with pytest.raises(SandboxError, match="too long a path for a socket"):
        directory.directory_of("one")
