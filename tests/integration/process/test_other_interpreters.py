"""The unit tests on every newer interpreter that `pyproject.toml` names."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tools.support_matrix import interpreters

ROOT: Final = Path(__file__).parents[3]
UV: Final = Path(sys.executable).with_name("uv")


def interpreter(version: str) -> str:
    """Return the path of an interpreter, also one of pyenv; skip the test without one."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    folders = map(str, sorted(root.glob(f"versions/{version}.*/bin")))
    found = subprocess.run(
        [UV, "python", "find", "--no-python-downloads", "--system", version],
        env={**os.environ, "PATH": os.pathsep.join([*folders, os.environ["PATH"]])},
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        pytest.skip(f"this machine has no Python {version}")
    return found.stdout.strip()


@pytest.mark.soak("interpreters")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", interpreters()[1:])
def test_the_unit_tests_pass_on_a_newer_interpreter(version: str, tmp_path: Path) -> None:
    """Install the locked packages for the interpreter, and run the whole unit suite: minutes."""
    python = interpreter(version)
    environ = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(tmp_path / "venv")}
    del environ["PYTEST_CURRENT_TEST"]
    synced = subprocess.run(
        [UV, "sync", "--frozen", "--quiet", "--python", python],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert synced.returncode == 0, synced.stderr
    pytest_of_it = str(tmp_path / "venv" / "bin" / "pytest")
    command = [pytest_of_it, "-q", "-n", "2", "--dist", "loadfile"]
    cache = ["-o", f"cache_dir={tmp_path / 'cache'}"]
    ran = subprocess.run(
        [*command, *cache, "tests/unit"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-8000:]
