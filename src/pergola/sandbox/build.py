"""Builds of the parts (programs and folders) of Pergola's Go modules, once per set of versions."""

import contextlib
import fcntl
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final, NamedTuple

import orjson

from pergola.sandbox.components import Components
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.module import Module, Patch
from pergola.sandbox.progress import Progress
from pergola.sandbox.toolchain import find_c_compiler, find_go

_REPORT_EVERY: Final = 5.0  # seconds
_TAIL: Final = 5  # lines
# Fragments of the build tools' output, and what each means for the user.
_CAUSES: Final = (
    ("no space left on device", "the disk is full: about 4 GB are needed while building"),
    ("permission denied", "a directory cannot be written: set XDG_CACHE_HOME to one of yours"),
    ("read-only file system", "a directory cannot be written: set XDG_CACHE_HOME to one of yours"),
    ("no such host", "the Go module proxy cannot be reached: connect, or set GOPROXY"),
    ("connection refused", "the Go module proxy cannot be reached: connect, or set GOPROXY"),
    ("network is unreachable", "the Go module proxy cannot be reached: connect, or set GOPROXY"),
    ("i/o timeout", "the Go module proxy cannot be reached: connect, or set GOPROXY"),
    ("module lookup disabled", "the Go module proxy is switched off: set GOPROXY"),
    ("libseccomp", "the headers of libseccomp are missing: install Debian's libseccomp-dev"),
    ("pkg-config", "pkg-config is missing: install Debian's pkg-config"),
    (
        "signal: killed",
        "the compiler was killed, most likely because memory ran out: 3 GB are needed",
    ),
)


def build(
    module: Module,
    components: Components,
    target: Path,
    progress: Progress,
    environ: Mapping[str, str],
) -> dict[str, Path]:
    """Build those `components` of a module that `target` lacks.

    Only one builder works at a time; others wait for it and find the work done.

    Raises:
        SandboxError: a program cannot be built; those built before it are kept.
    """
    try:
        target.mkdir(parents=True, exist_ok=True)
        with _alone(target, progress):
            missing = [c for c in components if not (target / c).exists()]
            if missing:
                _build_all(module, missing, target, progress, environ)
    except OSError as error:
        raise SandboxError(
            f"cannot store the sandbox's programs in {target}: {explain(str(error))}"
        ) from error
    return {component: target / component for component in components}


def explain(output: str) -> str:
    """Explain a failed build's output in one sentence, or return its last lines if unknown."""
    lowered = output.lower()
    for sign, meaning in _CAUSES:
        if sign in lowered:
            return meaning
    return "\n".join(output.strip().splitlines()[-_TAIL:]) or "no reason was given"


def environment(module: Module, cache: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for Go: nothing that changes the result, and writable caches."""
    fixed = {
        "CGO_ENABLED": str(int(module.cgo)),
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    if module.unlisted:
        patterns = filter(None, (environ.get("GONOSUMDB"), *module.unlisted))
        fixed["GONOSUMDB"] = ",".join(patterns)
    home = environ.get("HOME", "")
    if not home or not os.access(home, os.W_OK):
        caches = {"GOCACHE": cache / "go-build", "GOPATH": cache / "go"}
        fixed |= {name: str(path) for name, path in caches.items() if name not in environ}
    return {**environ, **fixed}


@contextlib.contextmanager
def _alone(target: Path, progress: Progress) -> Iterator[None]:
    with (target / ".lock").open("w") as lock:
        began = time.monotonic()
        while not _is_locked(lock):
            waited = time.monotonic() - began
            progress(f"another process is building the sandbox's programs: waiting, {waited:.0f} s")
            time.sleep(_REPORT_EVERY)
        yield


def _is_locked(lock: IO[str]) -> bool:
    """Lock a file, and return whether that worked; a wait for it could not be interrupted."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _build_all(
    module: Module,
    components: list[str],
    target: Path,
    progress: Progress,
    environ: Mapping[str, str],
) -> None:
    cache = target.parent
    go = find_go(module.go_version, cache, progress, environ)
    if module.cgo:
        environ = {**environ, "CC": find_c_compiler(cache, progress, environ)}
    progress(f"building {', '.join(components)} from source into {target}: once, for some minutes")
    work = _Work(go, module.directory, environment(module, cache, environ))
    with tempfile.TemporaryDirectory(dir=cache, prefix=".build-") as fresh:
        options = [*_options(module), *_patched(work, module.patches, Path(fresh))]
        for number, component in enumerate(components, 1):
            part = Path(fresh) / component
            label = f"[{number}/{len(components)}] {component}"
            if component in module.folders:
                folder = module.folders[component]
                _copy(_downloaded(work, folder.module, label) / folder.path, part)
            else:
                _build_one(
                    work,
                    [*options, "-o", str(part), module.packages[component]],
                    label,
                    progress,
                )
            part.replace(target / component)


def _options(module: Module) -> list[str]:
    options = ["-v", "-trimpath", "-ldflags", module.linker_flags(), "-buildvcs=false"]
    return [*options, "-tags", ",".join(module.tags)] if module.tags else options


class _Work(NamedTuple):
    """The Go command with its working directory and environment."""

    go: Path
    directory: Path
    environ: dict[str, str]


def _build_one(work: _Work, options: list[str], label: str, progress: Progress) -> None:
    with subprocess.Popen(
        [work.go, "build", *options],
        cwd=work.directory,
        env=work.environ,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as go:
        if go.stderr is None:
            raise AssertionError("stderr is a pipe")
        try:
            output = _follow(go.stderr, label, progress)
        except BaseException:
            go.kill()
            raise
    if go.returncode != 0:
        raise SandboxError(f"cannot build {label}: {explain(output)}")


def _patched(work: _Work, patches: tuple[Patch, ...], folder: Path) -> list[str]:
    """Return the options by which Go compiles patched copies of third-party modules.

    Raises:
        SandboxError: a file does not have the text that a patch replaces, exactly once.
    """
    if not patches:
        return []
    requirements = (work.directory / "go.mod").read_text()
    for module in {patch.module for patch in patches}:
        copy = folder / "patched" / module
        _copy(_downloaded(work, module, module), copy)
        requirements += f"replace {module} => {copy}\n"
    for patch in patches:
        file = folder / "patched" / patch.module / patch.path
        text = file.read_text()
        if text.count(patch.old) != 1:
            raise SandboxError(f"cannot patch {file}: it does not have {patch.old!r} once")
        file.write_text(text.replace(patch.old, patch.new))
    (folder / "go.mod").write_text(requirements)
    shutil.copyfile(work.directory / "go.sum", folder / "go.sum")
    return [f"-modfile={folder / 'go.mod'}"]


def _copy(source: Path, target: Path) -> None:
    """Copy a folder, without the modes of its files: Go's downloads are read-only."""
    for file in filter(Path.is_file, source.rglob("*")):
        copied = target / file.relative_to(source)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)


def _downloaded(work: _Work, module: str, label: str) -> Path:
    """Download a third-party module, and return its folder."""
    answer = subprocess.run(
        [work.go, "mod", "download", "-json", module],
        check=False,
        cwd=work.directory,
        env=work.environ,
        capture_output=True,
    )
    if answer.returncode != 0:
        output = (answer.stderr + answer.stdout).decode(errors="replace")
        raise SandboxError(f"cannot download {label}: {explain(output)}")
    return Path(orjson.loads(answer.stdout)["Dir"])


def _follow(stderr: IO[bytes], label: str, progress: Progress) -> str:
    """Report the progress of `go build -v`, which prints each package before compiling it."""
    began = reported = time.monotonic()
    output = b""
    while True:
        readable, _, _ = select.select([stderr], [], [], _REPORT_EVERY)
        chunk = os.read(stderr.fileno(), 65536) if readable else b""
        output += chunk
        now = time.monotonic()
        if readable and not chunk:
            progress(f"{label}: done in {now - began:.0f} s")
            return output.decode(errors="replace")
        if now - reported >= _REPORT_EVERY:
            progress(f"{label}: {_stage(output)}, {now - began:.0f} s")
            reported = now


def _stage(output: bytes) -> str:
    lines = output.splitlines()
    fetched = sum(line.startswith(b"go: ") for line in lines)
    compiled = len(lines) - fetched
    if compiled:
        return f"{compiled} packages compiled"
    return f"{fetched} modules downloaded" if fetched else "in progress"
