"""`pergola sandbox`: a real control plane on this machine, started and stopped by hand."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from pergola.sandbox import Sandbox

Name = Annotated[str, Parameter(help="Which sandbox: several may run side by side.")]

app = App(
    name="sandbox",
    help="Run a real Kubernetes control plane on this machine, without root or containers.",
    help_epilogue=(
        "etcd, kube-apiserver, kube-controller-manager and kube-scheduler run as processes on"
        " loopback; kwok simulates three nodes and their pods. The programs are taken from"
        " PERGOLA_SANDBOX_BIN, from KUBEBUILDER_ASSETS, or from the cache, into which what is"
        " missing is built once. Nothing is kept when a sandbox stops."
    ),
)


@app.command
def start(*, name: Name = "default") -> None:
    """Start a sandbox, and return when it can be used.

    It runs until it is stopped. One that runs already is left as it is.
    """
    from pergola import sandbox

    with _plain_errors():
        running = sandbox.find(name) or asyncio.run(sandbox.start(name, owner=None, progress=_tell))
        print(f'sandbox "{name}" is ready: {running.state()["server"]}')
        print(f"export KUBECONFIG={shlex.quote(str(running.kubeconfig))}")


@app.command
def stop(*, name: Name = "default") -> None:
    """Stop a sandbox, and remove all that it stored."""
    from pergola import sandbox

    with _plain_errors():
        stopped = asyncio.run(sandbox.stop(name))
    print(f'sandbox "{name}" is stopped' if stopped else f'no sandbox "{name}" runs')


@app.command
def status(*, name: Name = "default") -> None:
    """Show what runs; the exit code is 1 if the sandbox does not."""
    with _plain_errors():
        running = _running(name)
        state = running.state()
        print(f'sandbox "{name}" is ready: {state["server"]}')
        print(f"directory (logs, data): {running.directory}")
        for component, child in state["components"].items():
            pid = child["process"][0] if child["process"] else "-"
            failures = f", failed {child['failures']} times" if child["failures"] else ""
            print(f"  {component:<24} {child['state']:<8} pid {pid}{failures}")


@app.command
def kubeconfig(*, name: Name = "default") -> None:
    """Print the path of a running sandbox's kubeconfig."""
    with _plain_errors():
        print(_running(name).kubeconfig)


@app.command
def build(
    *,
    everything: Annotated[
        bool,
        Parameter(
            name="--all", negative=(), help="Also what only Pergola's own tests run beside it."
        ),
    ] = False,
) -> None:
    """Build the programs of the sandbox that are nowhere to be found, and print where all are."""
    from pergola.sandbox import ALL, binaries
    from pergola.sandbox.module import MODULES

    parts = tuple(part for module in MODULES for part in module.parts)
    with _plain_errors():
        found = binaries.find(parts if everything else ALL, progress=_tell)
        for component, program in found.items():
            print(f"{component:<24} {program}")


def _running(name: str) -> Sandbox:
    from pergola import sandbox

    running = sandbox.find(name)
    if running is None:
        command = "pergola sandbox start" + (f" --name {name}" if name != "default" else "")
        raise sandbox.SandboxError(f'no sandbox "{name}" runs; start it with `{command}`')
    return running


@contextmanager
def _plain_errors() -> Iterator[None]:
    from pergola.sandbox import SandboxError

    try:
        yield
    except SandboxError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("interrupted; nothing is left running", file=sys.stderr)
        raise SystemExit(130) from None


def _tell(line: str) -> None:
    # Not on standard output, which may be read by a script.
    print(line, file=sys.stderr, flush=True)
