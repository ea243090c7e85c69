"""Pergola's own image: this interpreter, this package and the libraries that it requires.

The files come from the machine that builds it, so it is for development only; `Containerfile`
builds the image for a registry. Tests and development tools are left out. All modules are
precompiled, because a container with a read-only root file system cannot compile them.
"""

import hashlib
import importlib.metadata
import importlib.util
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pergola.sandbox import binaries
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images.layers import Entry, program
from pergola.sandbox.images.oci import Recipe
from pergola.sandbox.images.offer import BASE, Offer
from pergola.sandbox.images.system_libraries import system_libraries
from pergola.sandbox.progress import Progress

_NAME: Final = "pergola"
_PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LIBRARY: Final = f"usr/local/lib/{_PYTHON}"
_PACKAGES: Final = f"{_LIBRARY}/site-packages"
_COMMAND: Final = f"""\
#!/usr/local/bin/{_PYTHON}
import sys
from pergola.cli import main
sys.exit(main())
"""
# Parts of the standard library that no service needs.
_LEFT_OUT: Final = {
    *("__pycache__", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test"),
    *("tests", "tkinter", "turtledemo"),
}
_LEFT_OUT_FILES: Final = re.compile(r"_tkinter|_test|_ctypes_test|xxlimited|xxsubtype|.*\.a$")
_OF_INSTALLERS: Final = frozenset(("INSTALLER", "RECORD", "REQUESTED", "direct_url.json"))
_REQUIRED_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class PergolaImage(Offer):
    """Pergola itself, or one of its programs.

    Attributes:
        name: the name of the image, and of the program in `PERGOLA_SANDBOX_BIN` that replaces it.
        command: the command that the container runs, before its arguments.
    """

    name: str = _NAME
    repository: str = "registry.example/pergola"
    aliases: tuple[str, ...] = ("pergola.local/pergola",)
    command: tuple[str, ...] = ("/usr/local/bin/pergola",)
    stand_in: str = ""
    source = "this installation of Pergola, with its interpreter"

    @property
    def version(self) -> str:
        """The version of the installed package."""
        return f"v{importlib.metadata.version(_NAME)}"

    def is_built(self, environ: Mapping[str, str] = os.environ) -> bool:
        """Return True: no program has to be built first."""
        return True

    def key(self, environ: Mapping[str, str] = os.environ) -> str:
        """Return a hash of the command, and of the names, sizes and times of all files.

        It is empty if the user provides the program: that is read each time.
        """
        if binaries.given(self.name, environ) is not None:
            return ""
        digest = hashlib.sha256(f"{sys.version} {self.name} {self.command}".encode())
        for entry in (*_interpreter(), *_libraries(), *_package()):
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
        interpreter, libraries = list(_interpreter()), list(_libraries())
        files = [e.content for e in (*interpreter, *libraries) if isinstance(e.content, Path)]
        elves = [path for path in files if path.suffix == ".so" or _is_program(path)]
        system = list(system_libraries(elves))
        command = Entry("usr/local/bin/pergola", _COMMAND.encode(), 0o755)
        return Recipe(
            [
                BASE,
                _slim([*system, *_compiled(interpreter)]),
                _slim(_compiled(libraries)),
                [command, *_compiled(list(_package()))],
            ],
            self.command,
            variables={"LD_LIBRARY_PATH": "/usr/local/lib", "PYTHONUNBUFFERED": "1"},
            labels=self.labels(),
        )


def _interpreter() -> Iterator[Entry]:
    yield program(f"usr/local/bin/{_PYTHON}", Path(sys.executable).resolve())
    for name in ("python", "python3"):
        yield Entry(f"usr/local/bin/{name}", target=_PYTHON)
    shared = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
    if shared.suffix != ".a" and shared.is_file():
        yield Entry(f"usr/local/lib/{shared.name}", shared)
    standard = Path(sysconfig.get_path("stdlib"))
    for file in _files(standard):
        yield Entry(f"{_LIBRARY}/{file.relative_to(standard)}", file)


def _libraries() -> Iterator[Entry]:
    for name in sorted(_required(_NAME) - {_NAME}):
        for file in importlib.metadata.files(name) or ():
            path = Path(str(file.locate()))
            inside = ".." not in file.parts and "__pycache__" not in file.parts
            if inside and path.name not in _OF_INSTALLERS and path.is_file():
                yield Entry(f"{_PACKAGES}/{file}", path)


def _package() -> Iterator[Entry]:
    spec = importlib.util.find_spec(_NAME)
    if spec is None or spec.origin is None:
        raise SandboxError("cannot build Pergola's image: Pergola is not installed as a package")
    folder = Path(spec.origin).parent
    for file in _files(folder):
        yield Entry(f"{_PACKAGES}/{_NAME}/{file.relative_to(folder)}", file)
    for listed in importlib.metadata.files(_NAME) or ():
        if listed.parts[0].endswith(".dist-info") and listed.name not in _OF_INSTALLERS:
            yield Entry(f"{_PACKAGES}/{listed}", Path(str(listed.locate())))


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in sorted(names):
            if not _LEFT_OUT_FILES.match(name):
                yield Path(parent, name)


def _required(name: str) -> set[str]:
    """Return the installed distributions that one requires, itself included."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        try:
            lines = importlib.metadata.requires(current) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(current)
        for line in lines:
            required = _REQUIRED_NAME.match(line)
            if required is not None and "extra ==" not in line:
                waiting.append(re.sub(r"[-_.]+", "-", required.group()).lower())
    return found


def _is_program(path: Path) -> bool:
    return path == Path(sys.executable).resolve() or ".so." in path.name


def _compiled(entries: list[Entry]) -> list[Entry]:
    """Add compiled modules, which do not depend on when or where they were compiled."""
    compiled = []
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "module.pyc")
        for entry in entries:
            if isinstance(entry.content, Path) and entry.path.endswith(".py"):
                try:
                    py_compile.compile(
                        str(entry.content),
                        str(target),
                        dfile=f"/{entry.path}",
                        doraise=True,
                        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                    )
                except py_compile.PyCompileError:
                    continue  # a template, or a module for another version of Python
                path = Path(entry.path)
                name = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
                compiled.append(Entry(str(path.parent / "__pycache__" / name), target.read_bytes()))
    return [*entries, *compiled]


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
        stand_in="is Pergola's resource manager",
    ),
    PergolaImage(
        "istiod",
        "gcr.io/istio-release/pilot",
        ("docker.io/istio/pilot",),
        ("/usr/local/bin/python", "-m", "pergola.sandbox.istiod"),
        stand_in="configures gateways that pass TLS on by server name, and nothing else",
    ),
)
