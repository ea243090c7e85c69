"""Sandboxes that the processes of one test run share, and private ones."""

import asyncio
import contextlib
import fcntl
import os
import secrets
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
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
        return find(name) or in_thread(
            start(name, components=components, owner=owner, progress=_print)
        )


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
            in_thread(stop(file.stem))
        if user == owner or ProcessId.of(user) is None:
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def private(
    components: Components = ALL,
    *,
    prepare: Callable[[Client], Coroutine[Any, Any, None]] | None = None,
    apiserver_flags: tuple[str, ...] = (),
) -> Iterator[Sandbox]:
    """Start a private sandbox, which is stopped when the context ends.

    Args:
        prepare: is run once with an administrator's client, before the sandbox is yielded.
        apiserver_flags: further flags of kube-apiserver.
    """
    name = f"private-{os.getpid()}-{secrets.token_hex(3)}"
    own = in_thread(
        start(name, components=components, apiserver_flags=apiserver_flags, progress=_print)
    )
    try:
        if prepare:
            in_thread(_prepared(own, prepare))
        yield own
    finally:
        in_thread(stop(name))


def in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own, even if the test's loop is running."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _prepared(
    sandbox: Sandbox, prepare: Callable[[Client], Coroutine[Any, Any, None]]
) -> None:
    async with Client.connect(load(sandbox.kubeconfig)) as client:
        await prepare(client)


def _name(purpose: str, owner: int) -> str:
    return f"{purpose}-{owner}"


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _print(line: str) -> None:
    # Past pytest's capturing: a first build takes minutes, which should not look like a hang.
    if sys.__stderr__ is not None:
        sys.__stderr__.write(f"sandbox: {line}\n")
        sys.__stderr__.flush()
