"""The files of this installation of Pergola: interpreter, libraries and package.

Tests and development tools are left out.
"""

import importlib.metadata
import importlib.util
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.sandbox.errors import SandboxError
from pergola.sandbox.images.layers import Entry, program

NAME: Final = "pergola"
EXTRAS: Final = ("aws", "otel")
"""The extras that Pergola's processes need."""
PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LIBRARY: Final = f"usr/local/lib/{PYTHON}"
_PACKAGES: Final = f"{_LIBRARY}/site-packages"
# Parts of the standard library that no service needs.
_LEFT_OUT: Final = {
    *("__pycache__", "ensurepip", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test"),
    *("tests", "tkinter", "turtledemo"),
}
_LEFT_OUT_FILES: Final = re.compile(r"_tkinter|_test|_ctypes_test|xxlimited|xxsubtype|.*\.a$")
_OF_INSTALLERS: Final = frozenset(("INSTALLER", "RECORD", "REQUESTED", "direct_url.json"))
_REQUIRED_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA: Final = re.compile(r"""extra == ["']([^"']+)""")


def interpreter() -> Iterator[Entry]:
    """Yield the interpreter with its standard library."""
    yield program(f"usr/local/bin/{PYTHON}", Path(sys.executable).resolve())
    for name in ("python", "python3"):
        yield Entry(f"usr/local/bin/{name}", target=PYTHON)
    shared = Path(sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME"))
    if shared.suffix != ".a" and shared.is_file():
        yield Entry(f"usr/local/lib/{shared.name}", shared)
    standard = Path(sysconfig.get_path("stdlib"))
    for file in _files(standard):
        yield Entry(f"{_LIBRARY}/{file.relative_to(standard)}", file)


def libraries() -> Iterator[Entry]:
    """Yield the distributions that Pergola requires."""
    for name in sorted(required(NAME) - {NAME}):
        for file in importlib.metadata.files(name) or ():
            path = Path(str(file.locate()))
            inside = ".." not in file.parts and "__pycache__" not in file.parts
            if inside and path.name not in _OF_INSTALLERS and path.is_file():
                yield Entry(f"{_PACKAGES}/{file}", path)


def package() -> Iterator[Entry]:
    """Yield the package itself with its metadata.

    Raises:
        SandboxError: Pergola is not installed as a package.
    """
    spec = importlib.util.find_spec(NAME)
    if spec is None or spec.origin is None:
        raise SandboxError("cannot build Pergola's image: Pergola is not installed as a package")
    folder = Path(spec.origin).parent
    for file in _files(folder, followlinks=True):  # a checkout links to examples and charts
        yield Entry(f"{_PACKAGES}/{NAME}/{file.relative_to(folder)}", file)
    for listed in importlib.metadata.files(NAME) or ():
        if listed.parts[0].endswith(".dist-info") and listed.name not in _OF_INSTALLERS:
            yield Entry(f"{_PACKAGES}/{listed}", Path(str(listed.locate())))


def _files(folder: Path, *, followlinks: bool = False) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, followlinks=followlinks):
        folders[:] = sorted(set(folders) - _LEFT_OUT)
        for name in sorted(names):
            if not _LEFT_OUT_FILES.match(name):
                yield Path(parent, name)


def required(name: str) -> set[str]:
    """Return the installed distributions that one requires, itself and `EXTRAS` included."""
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
            extra = _EXTRA.search(line)
            is_needed = extra is None or (current == NAME and extra.group(1) in EXTRAS)
            if required is not None and is_needed:
                waiting.append(re.sub(r"[-_.]+", "-", required.group()).lower())
    return found
