"""Pergola's own image: this interpreter, this package and the libraries that it requires.

The files come from the machine that builds it, so it is for development only; `make release` builds
the image for a registry. All modules are precompiled, because a container with a read-only
root file system cannot compile them.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Final

from pergola.sandbox import binaries
from pergola.sandbox.images import installation
from pergola.sandbox.images.compiled import compiled
from pergola.sandbox.images.installation import NAME, PYTHON
from pergola.sandbox.images.layers import Entry, program
from pergola.sandbox.images.oci import Recipe
from pergola.sandbox.images.offer import BASE, Offer
from pergola.sandbox.images.system_libraries import system_libraries
from pergola.sandbox.on_demand import HELM
from pergola.sandbox.progress import Progress

_COMMAND: Final = f"""\
#!/usr/local/bin/{PYTHON}
import sys
from pergola.cli import main
sys.exit(main())
"""


@dataclass(frozen=True)
class PergolaImage(Offer):
    """Pergola itself, or one of its programs.

    Attributes:
        name: the name of the image, and of the program in `PERGOLA_SANDBOX_BIN` that replaces it.
        command: the command that the container runs, before its arguments.
        programs: programs that it starts; the operator renders charts with Helm.
    """

    name: str = NAME
    repository: str = "registry.example/pergola"
    aliases: tuple[str, ...] = ("pergola.local/pergola",)
    command: tuple[str, ...] = ("/usr/local/bin/pergola",)
    stand_in: str = ""
    programs: tuple[str, ...] = (HELM,)
    source = "this installation of Pergola, with its interpreter"

    @property
    def version(self) -> str:
        """The version of the installed package."""
        return f"v{importlib.metadata.version(NAME)}"

    def is_built(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return whether the programs that it starts exist already."""
        return len(binaries.present(self.programs, environ)) == len(self.programs)

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return a hash of the command, and of the names, sizes and times of all files.

        It is empty if the user provides the program, which is read each time.
        """
        if binaries.given(self.name, environ) is not None:
            return ""
        digest = hashlib.sha256(f"{sys.version} {self.name} {self.command}".encode())
        programs = self._programs(binaries.present(self.programs, environ))
        parts = (
            installation.interpreter(),
            installation.libraries(),
            installation.package(),
            programs,
        )
        for entry in chain(*parts):
            if isinstance(entry.content, Path):
                found = entry.content.stat()
                digest.update(f"{entry.path} {found.st_size} {found.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def recipe(self, progress: Progress, environ: Mapping[str, str] = os.environ) -> Recipe:
        """Return a recipe with the most often changed files in the uppermost layer."""
        given = binaries.given(self.name, environ)
        if given is not None:
            path = f"usr/local/bin/{self.name}"
            return Recipe([BASE, [program(path, given)]], [f"/{path}"], labels=self.labels())
        progress("compiling the modules of Pergola's image")
        interpreter, libraries = list(installation.interpreter()), list(installation.libraries())
        files = [e.content for e in (*interpreter, *libraries) if isinstance(e.content, Path)]
        elves = [path for path in files if path.suffix == ".so" or _is_program(path)]
        system = list(system_libraries(elves))
        command = Entry("usr/local/bin/pergola", _COMMAND.encode(), 0o755)
        programs = self._programs(binaries.find(self.programs, progress, environ))
        return Recipe(
            [
                BASE,
                *([programs] if programs else []),
                _slim([*system, *compiled(interpreter)]),
                _slim([*compiled(libraries)]),
                [command, *compiled(installation.package())],
            ],
            self.command,
            variables={"LD_LIBRARY_PATH": "/usr/local/lib", "PYTHONUNBUFFERED": "1"},
            labels=self.labels(),
        )

    def _programs(self, found: Mapping[str, Path]) -> list[Entry]:
        return [program(f"usr/local/bin/{name}", path) for name, path in found.items()]


def _is_program(path: Path) -> bool:
    return path == Path(sys.executable).resolve() or ".so." in path.name


def _slim(entries: list[Entry]) -> list[Entry]:
    """Drop debug information, half of the size, if the machine has `strip`."""
    strip = shutil.which("strip")
    if strip is None:
        return entries
    return [replace(e, content=_stripped(strip, e.content)) if _is_elf(e) else e for e in entries]


def _is_elf(entry: Entry) -> bool:
    if not isinstance(entry.content, Path):
        return False
    with entry.content.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _stripped(strip: str, content: bytes | Path | None) -> bytes | Path | None:
    with tempfile.NamedTemporaryFile() as target:
        line = [strip, "--strip-debug", "-o", target.name, str(content)]
        done = subprocess.run(line, check=False, capture_output=True)
        return Path(target.name).read_bytes() if done.returncode == 0 else content


# Images of other projects in which Pergola takes the place of the program.
REPLACEMENTS: Final[tuple[Offer, ...]] = (
    PergolaImage(
        "gardener-resource-manager",
        "europe-docker.pkg.dev/gardener-project/releases/gardener/resource-manager",
        ("europe-docker.pkg.dev/gardener-project/public/gardener/resource-manager",),
        ("/usr/local/bin/pergola", "resource-manager"),
        stand_in="runs Pergola's resource manager",
        programs=(),
    ),
    PergolaImage(
        "istiod",
        "gcr.io/istio-release/pilot",
        ("docker.io/istio/pilot",),
        ("/usr/local/bin/python", "-m", "pergola.sandbox.istiod"),
        stand_in="configures gateways that route by server name and HTTP",
        programs=(),
    ),
    PergolaImage(
        "opentelemetry-operator",
        "europe-docker.pkg.dev/gardener-project/releases/3rd/opentelemetry-operator/"
        "opentelemetry-operator",
        aliases=(),
        command=("/usr/local/bin/python", "-m", "pergola.sandbox.collectors"),
        stand_in="runs collectors as Deployments that collect nothing",
        programs=(),
    ),
)
