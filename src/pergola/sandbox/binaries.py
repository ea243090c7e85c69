"""Where the sandbox's programs are: given, left by a Kubernetes SDK, cached, or built now.

Looked up in this order, each program for itself:

1. the directory of `PERGOLA_SANDBOX_BIN`;
2. the directory of `KUBEBUILDER_ASSETS`, if its API server is of the version that we test with;
3. `${XDG_CACHE_HOME:-~/.cache}/pergola/sandbox/<key>/`, where what is missing is built; each Go
   module of ours has its own key.

What belongs to a program, such as its CRDs, is a folder beside it, and is found in the same way.
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
from pergola.sandbox.progress import Progress, silent

GIVEN: Final = "PERGOLA_SANDBOX_BIN"
ASSETS: Final = "KUBEBUILDER_ASSETS"
_MINOR: Final = re.compile(r"v(\d+\.\d+)\.")
_VERSION_TIMEOUT: Final = 20.0


def find(
    components: Components = ALL,
    progress: Progress = silent,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, Path]:
    """The program (or folder) of each component; what is nowhere is built, which takes minutes.

    Raises:
        SandboxError: the programs cannot be had; the text says why.
    """
    found = present(components, environ)
    for module in MODULES:
        missing = tuple(c for c in components if c in module.parts and c not in found)
        if missing:
            found |= build.build(module, missing, place(module, environ), progress, environ)
    return {component: found[component] for component in components}


def present(components: Components, environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """The programs that are there already.

    Raises:
        SandboxError: `PERGOLA_SANDBOX_BIN` names no directory.
    """
    found: dict[str, Path] = {}
    for module in MODULES:
        wanted = [component for component in components if component in module.parts]
        places = _places(module, environ) if wanted else []
        for component in wanted:
            there = (directory / component for directory in places)
            path = next((path for path in there if os.access(path, os.X_OK)), None)
            if path is not None:
                found[component] = path
    return found


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Where built programs, of whatever version, and a fetched Go are kept.

    Raises:
        SandboxError: there is no home directory to keep them in.
    """
    given = environ.get("XDG_CACHE_HOME", "")
    if Path(given).is_absolute():  # others are to be ignored, says the XDG specification
        return Path(given) / "pergola" / "sandbox"
    home = environ.get("HOME")
    if not home:
        raise SandboxError("neither HOME nor XDG_CACHE_HOME is set; set one of them")
    return Path(home) / ".cache" / "pergola" / "sandbox"


def place(module: Module, environ: Mapping[str, str] = os.environ) -> Path:
    """Where in the cache the parts of a module are, or will be."""
    return cache(environ) / module.key


def _places(module: Module, environ: Mapping[str, str]) -> list[Path]:
    places = []
    if environ.get(GIVEN):
        given = Path(environ[GIVEN])
        if not given.is_dir():
            raise SandboxError(f"{GIVEN} is {given}, which is no directory; correct or unset it")
        places.append(given.absolute())
    if module is SANDBOX and environ.get(ASSETS) and _is_our_version(Path(environ[ASSETS])):
        places.append(Path(environ[ASSETS]).absolute())
    return [*places, place(module, environ)]


def _is_our_version(assets: Path) -> bool:
    """Controllers must not be newer than their API server, and nobody tests older ones with us."""
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
