"""Lookup of the sandbox's programs: user-provided, from a Kubernetes SDK, cached, or built now.

Each program is looked up separately, in this order:

1. the directory of `PERGOLA_SANDBOX_BIN`;
2. the directory of `KUBEBUILDER_ASSETS`, if its API server has the tested minor version;
3. `${XDG_CACHE_HOME:-~/.cache}/pergola/sandbox/<key>/`, into which missing programs are built;
   each of Pergola's Go modules has its own key.

Files that belong to a program, such as its CRDs, are in a folder next to it, found the same way.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pergola.sandbox import build
from pergola.sandbox.components import ALL, APISERVER, Components
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import MODULES, SANDBOX, Module, kubernetes_version
from pergola.sandbox.on_demand import ON_DEMAND
from pergola.sandbox.progress import Progress, silent

GIVEN: Final = "PERGOLA_SANDBOX_BIN"
ASSETS: Final = "KUBEBUILDER_ASSETS"
_ALL: Final = (*MODULES, *ON_DEMAND)
_MINOR: Final = re.compile(r"v(\d+\.\d+)\.")
_VERSION_TIMEOUT: Final = 20.0


def find(
    components: Components = ALL,
    progress: Progress = silent,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, Path]:
    """Return the program (or folder) of each component, building missing ones in minutes.

    Raises:
        SandboxError: a program can be neither found nor built.
    """
    found = present(components, environ)
    for module in _ALL:
        missing = tuple(c for c in components if c in module.parts and c not in found)
        if missing:
            found |= build.build(module, missing, place(module, environ), progress, environ)
    return {component: found[component] for component in components}


def present(components: Components, environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Return the programs that exist already, without building any.

    Raises:
        SandboxError: `PERGOLA_SANDBOX_BIN` is not a directory.
    """
    found: dict[str, Path] = {}
    for module in _ALL:
        parts = [component for component in components if component in module.parts]
        places = _places(module, environ) if parts else []
        for component in parts:
            there = (directory / component for directory in places)
            path = next((path for path in there if os.access(path, os.X_OK)), None)
            if path is not None:
                found[component] = path
    return found


def given(name: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the program in `PERGOLA_SANDBOX_BIN` with this name, or None if there is none.

    Raises:
        SandboxError: `PERGOLA_SANDBOX_BIN` is not a directory.
    """
    path = next((directory / name for directory in _given(environ)), None)
    return path if path is not None and os.access(path, os.X_OK) else None


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory for built programs of all versions and for a downloaded Go.

    Raises:
        SandboxError: neither HOME nor XDG_CACHE_HOME is set.
    """
    given = environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():  # the XDG specification requires ignoring relative paths
        return Path(given) / "pergola" / "sandbox"
    home = environ.get("HOME")
    if not home:
        raise SandboxError("neither HOME nor XDG_CACHE_HOME is set; set one of them")
    return Path(home) / ".cache" / "pergola" / "sandbox"


def place(module: Module, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache directory for the parts of a module, whether it exists or not."""
    return cache(environ) / module.key


def _places(module: Module, environ: Mapping[str, str]) -> list[Path]:
    places = _given(environ)
    if module is SANDBOX and environ.get(ASSETS) and _is_our_version(Path(environ[ASSETS])):
        places.append(Path(environ[ASSETS]).absolute())
    return [*places, place(module, environ)]


def _given(environ: Mapping[str, str]) -> list[Path]:
    if not environ.get(GIVEN):
        return []
    folder = Path(environ[GIVEN])
    if not folder.is_dir():
        raise SandboxError(f"{GIVEN} is {folder}, which is not a directory; correct or unset it")
    return [folder.absolute()]


def _is_our_version(assets: Path) -> bool:
    """Compare minor versions, because controllers must not be newer than the API server."""
    try:
        answer = subprocess.run(
            [assets / APISERVER, "--version"],
            check=True,
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    theirs, ours = _MINOR.search(answer.stdout), _MINOR.search(kubernetes_version())
    return bool(theirs and ours and theirs.group(1) == ours.group(1))
