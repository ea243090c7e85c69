"""`pergola sandbox`: a real control plane on this machine, started and stopped by hand."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from pergola.cli.sandbox.errors import plain_errors, say
from pergola.cli.sandbox.images import app as images

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
app.command(images)


@app.command
def start(
    *,
    name: Name = "default",
    node: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Run a real node, in namespaces of its own; takes root.",
        ),
    ] = False,
) -> None:
    """Start a sandbox, and return when it can be used.

    It runs until it is stopped. One that runs already is left as it is.
    """
    from pergola import sandbox

    components = sandbox.WITH_NODE if node else sandbox.ALL
    with plain_errors():
        running = sandbox.find(name) or asyncio.run(
            sandbox.start(name, components=components, owner=None, progress=say)
        )
        print(f'sandbox "{name}" is ready: {running.state()["server"]}')
        print(f"export KUBECONFIG={shlex.quote(str(running.kubeconfig))}")


@app.command
def stop(*, name: Name = "default") -> None:
    """Stop a sandbox, and remove all that it stored."""
    from pergola import sandbox

    with plain_errors():
        stopped = asyncio.run(sandbox.stop(name))
    print(f'sandbox "{name}" is stopped' if stopped else f'no sandbox "{name}" runs')


@app.command
def status(*, name: Name = "default") -> None:
    """Show what runs; the exit code is 1 if the sandbox does not."""
    from pergola.sandbox.components import KUBELET

    with plain_errors():
        running = _running(name)
        state = running.state()
        print(f'sandbox "{name}" is ready: {state["server"]}')
        print(f"directory (logs, data): {running.directory}")
        for component, child in state["components"].items():
            pid = child["process"][0] if child["process"] else "-"
            failures = f", failed {child['failures']} times" if child["failures"] else ""
            print(f"  {component:<24} {child['state']:<8} pid {pid}{failures}")
        if KUBELET in state["components"]:
            _print_node(running)


@app.command
def kubeconfig(*, name: Name = "default") -> None:
    """Print the path of a running sandbox's kubeconfig."""
    with plain_errors():
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
    node: Annotated[bool, Parameter(negative=(), help="Also what a real node takes.")] = False,
) -> None:
    """Build the programs of the sandbox that are nowhere to be found, and print where all are."""
    from pergola.sandbox import ALL, binaries
    from pergola.sandbox.module import MODULES, NODE_MODULES
    from pergola.sandbox.node import requirements

    modules = [m for m in MODULES if (node if m in NODE_MODULES else everything)]
    parts = dict.fromkeys((*ALL, *(part for module in modules for part in module.parts)))
    with plain_errors():
        if node:
            requirements.check()
        found = binaries.find(tuple(parts), progress=say)
        for component, program in found.items():
            print(f"{component:<24} {program}")


def _print_node(running: Sandbox) -> None:
    from pergola.sandbox.node.observe import observe

    nodes, pods = asyncio.run(observe(running.kubeconfig))
    for node in nodes:
        print(f'node "{node.name}": {node.condition} ({node.versions})')
    for pod in pods:
        print(f"  {pod.key!s:<48} {pod.state:<12} {', '.join(pod.images)}")


def _running(name: str) -> Sandbox:
    from pergola import sandbox

    running = sandbox.find(name)
    if running is None:
        command = "pergola sandbox start" + (f" --name {name}" if name != "default" else "")
        raise sandbox.SandboxError(f'no sandbox "{name}" runs; start it with `{command}`')
    return running
