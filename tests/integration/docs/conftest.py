"""The environment of a reader: an installed wheel, kubectl and Helm, and no checkout."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from pergola.sandbox import binaries
from pergola.sandbox.on_demand import HELM
from tests.support.documented import ROOT
from tests.support.documented.reader import Reader
from tests.support.documented.shell import kubectl

UV: Final = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    line = ("build", "--wheel", "--no-build-isolation", "--python", sys.executable)
    _uv(*line, "--out-dir", str(folder), str(ROOT))
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the variables of a shell with the wheel and its requirements, without extras."""
    return _installed(wheel, tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="session")
def reader(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Yield a reader who has unpacked all files into an empty folder, and has a sandbox."""
    folder = tmp_path_factory.mktemp("reader")
    variables = _installed(wheel, folder / "environment", "--all-extras")
    # The documentation installs with pip; it finds everything installed.
    _uv("pip", "install", "--quiet", "pip", "pytest", "pytest-asyncio", venv=folder / "environment")
    programs = folder / "environment" / "bin"
    for name, path in binaries.find((HELM,)).items():
        (programs / name).symlink_to(path)
    (programs / "kubectl").symlink_to(kubectl())
    home = folder / "home"
    home.mkdir()
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    # The path must be short enough for sockets.
    with TemporaryDirectory() as run_directory, _own_network() as within:
        variables |= {"HOME": str(home), "XDG_CACHE_HOME": cache, "XDG_RUNTIME_DIR": run_directory}
        found = Reader(folder / "work", variables, within)
        with found.terminal() as terminal:
            terminal.type("pergola unpack")
        yield found
        with found.terminal() as terminal:
            terminal.type("pergola sandbox stop")


@contextmanager
def _own_network() -> Iterator[tuple[str, ...]]:
    """Yield the command that runs another one with all ports free, and without the internet.

    It is empty if the system does not allow that.
    """
    is_root = os.geteuid() == 0
    creating = () if is_root else ("--user", "--map-current-user", "--keep-caps")
    entering = () if is_root else ("--user", "--preserve-credentials")
    script = "ip link set lo up && echo ready && exec sleep infinity"
    with subprocess.Popen(
        ("unshare", *creating, "--net", "sh", "-c", script), stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout is not None
            is_ready = holder.stdout.readline() == b"ready\n"
            target = (f"--target={holder.pid}", "--net", *entering)
            yield ("nsenter", *target, "--") if is_ready else ()
        finally:
            holder.kill()


def _installed(wheel: Path, folder: Path, *extras: str) -> dict[str, str]:
    """Install a wheel with what `uv.lock` names; return the variables that lead to it."""
    _uv("venv", "--quiet", "--python", sys.executable, str(folder))
    _uv(*["sync", "--frozen", "--active", "--no-dev", "--no-install-project"], *extras, venv=folder)
    _uv("pip", "install", "--offline", "--no-deps", str(wheel), venv=folder)
    kept = {name: os.environ[name] for name in ("HOME", "XDG_CACHE_HOME") if name in os.environ}
    return {**kept, "PATH": f"{folder / 'bin'}:/usr/bin:/bin"}


def _uv(*arguments: str, venv: Path | None = None) -> None:
    variables = os.environ | ({"VIRTUAL_ENV": str(venv)} if venv else {})
    answer = subprocess.run(
        [UV, *arguments], env=variables, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
