"""Sandboxes that the processes of one test run share, and private ones."""

import asyncio
import contextlib
import fcntl
import os
import secrets
import sys
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pergola.sandbox import ALL, Components, Sandbox, SandboxError, find, start, stop
from pergola.sandbox.directory import root
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.node import requirements
from pergola.sandbox.processes import ProcessId

T = TypeVar("T")


def shared_sandbox(purpose: str, owner: int, components: Components) -> Sandbox:
    """Return the sandbox that the test run of process `owner` shares for a purpose.

    The first caller starts it; the others wait until it is ready.
    """
    name = _name(purpose, owner)
    with _lock(root() / f"{name}.starting"):
        return find(name) or _run(start(name, components=components, owner=owner, progress=_print))


def require_node() -> None:
    """Skip the test if no real node can run; with `CI=true`, fail it."""
    try:
        requirements.check()
    except SandboxError as error:
        _skip(str(error))


def require_images(*names: str) -> None:
    """Skip the test where images are not built, which takes minutes; with `CI=true`, fail it."""
    missing = [offer.name for offer in named(names) if not offer.is_built()]
    if missing:
        _skip(f"images are missing: run `pergola sandbox images build {' '.join(missing)}`")


def _skip(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def stop_shared(owner: int) -> None:
    """Stop all sandboxes that the test run of process `owner` shared.

    Also removes the lock files of runs that were killed.
    """
    for file in root().glob("*.starting"):
        user = int(file.stem.rpartition("-")[2])
        if user == owner:
            _run(stop(file.stem))
        if user == owner or ProcessId.of(user) is None:
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def private(components: Components = ALL) -> Iterator[Sandbox]:
    """Yield a private sandbox, which ends with the context."""
    name = f"private-{os.getpid()}-{secrets.token_hex(3)}"
    own = _run(start(name, components=components, progress=_print))
    try:
        yield own
    finally:
        _run(stop(name))


def _name(purpose: str, owner: int) -> str:
    return f"{purpose}-{owner}"


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(work: Coroutine[Any, Any, T]) -> T:
    # In a thread, because the test's own event loop may be running.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


def _print(line: str) -> None:
    # Past pytest's capturing: a first build takes minutes, which should not look like a hang.
    if sys.__stderr__ is not None:
        sys.__stderr__.write(f"sandbox: {line}\n")
        sys.__stderr__.flush()
