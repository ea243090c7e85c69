"""`pergola sandbox`: a real control plane on this machine, started and stopped by hand."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from pergola.cli.output import ReportOutput, show
from pergola.cli.sandbox.errors import plain_errors, report
from pergola.cli.sandbox.images import app as images
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonValue
    from pergola.sandbox import Sandbox
    from pergola.sandbox.node.observe import Observed

Name = Annotated[str, Parameter(help="Name of the sandbox; several can run side by side.")]

app = App(
    name="sandbox",
    help="Run a real Kubernetes control plane on this machine, without root or containers.",
    help_epilogue=(
        "etcd, kube-apiserver, kube-controller-manager and kube-scheduler run as processes on"
        " loopback; kwok simulates three nodes and their pods. The programs come from"
        " PERGOLA_SANDBOX_BIN, from KUBEBUILDER_ASSETS, or from the cache, into which missing"
        " ones are built once. A sandbox loses all data when it stops."
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
            help="Run a real node in separate namespaces; requires root.",
        ),
    ] = False,
) -> None:
    """Start a sandbox, and return when it is ready.

    It runs until it is stopped. A running sandbox is left unchanged.
    """
    from pergola import sandbox

    components = sandbox.WITH_NODE if node else sandbox.ALL
    with plain_errors():
        running = sandbox.find(name) or asyncio.run(
            sandbox.start(name, components=components, owner=None, progress=report)
        )
        say(f'sandbox "{name}" is ready: {running.state()["server"]}')
        say(f"export KUBECONFIG={shlex.quote(str(running.kubeconfig))}")


@app.command
def stop(*, name: Name = "default") -> None:
    """Stop a sandbox, and remove its data."""
    from pergola import sandbox

    with plain_errors():
        stopped = asyncio.run(sandbox.stop(name))
    say(f'sandbox "{name}" is stopped' if stopped else f'no sandbox "{name}" is running')


@app.command
def status(*, name: Name = "default", output: ReportOutput = "text") -> None:
    """Show the components of a sandbox; exit with code 1 if it is not running."""
    from pergola.sandbox.components import KUBELET
    from pergola.sandbox.node.observe import observe

    with plain_errors():
        running = _running(name)
        has_node = KUBELET in running.state()["components"]
        observed = asyncio.run(observe(running.kubeconfig)) if has_node else None
    show(
        output,
        data=_data(running, observed),
        text=lambda: _print(running, observed),
    )


@app.command
def kubeconfig(*, name: Name = "default") -> None:
    """Print the path of a running sandbox's kubeconfig."""
    with plain_errors():
        say(_running(name).kubeconfig)


@app.command
def build(
    *,
    everything: Annotated[
        bool,
        Parameter(
            name="--all",
            negative=(),
            help="Also build the programs that only Pergola's tests need.",
        ),
    ] = False,
    node: Annotated[
        bool, Parameter(negative=(), help="Also build the programs of a real node.")
    ] = False,
) -> None:
    """Build the missing programs of the sandbox, and print the paths of all programs."""
    from pergola.sandbox import ALL, binaries
    from pergola.sandbox.module import MODULES, NODE_MODULES
    from pergola.sandbox.node import requirements

    modules = [m for m in MODULES if (node if m in NODE_MODULES else everything)]
    parts = dict.fromkeys((*ALL, *(part for module in modules for part in module.parts)))
    with plain_errors():
        if node:
            requirements.check()
        found = binaries.find(tuple(parts), progress=report)
        for component, program in found.items():
            say(f"{component:<24} {program}")


def _data(running: Sandbox, observed: Observed | None) -> dict[str, JsonValue]:
    state = running.state()
    components: list[JsonValue] = [
        {
            "name": component,
            "state": child["state"],
            "pid": child["process"][0] if child["process"] else None,
            "failures": child["failures"],
        }
        for component, child in state["components"].items()
    ]
    found: dict[str, JsonValue] = {
        "name": running.name,
        "server": state["server"],
        "kubeconfig": str(running.kubeconfig),
        "directory": str(running.directory),
        "components": components,
    }
    if observed is not None:
        found["nodes"] = [
            {"name": node.name, "condition": node.condition, "versions": node.versions}
            for node in observed.nodes
        ]
        found["pods"] = [
            {
                "namespace": pod.key.namespace,
                "name": pod.key.name,
                "state": pod.state,
                "images": list(pod.images),
            }
            for pod in observed.pods
        ]
    return found


def _print(running: Sandbox, observed: Observed | None) -> None:
    state = running.state()
    say(f'sandbox "{running.name}" is ready: {state["server"]}')
    say(f"directory (logs, data): {running.directory}")
    for component, child in state["components"].items():
        pid = child["process"][0] if child["process"] else "-"
        failures = f", failed {child['failures']} times" if child["failures"] else ""
        say(f"  {component:<24} {child['state']:<8} pid {pid}{failures}")
    if observed is None:
        return
    for node in observed.nodes:
        say(f'node "{node.name}": {node.condition} ({node.versions})')
    longest = max((len(str(pod.key)) for pod in observed.pods), default=0)
    for pod in observed.pods:
        say(f"  {pod.key!s:<{longest}} {pod.state:<12} {', '.join(pod.images)}")


def _running(name: str) -> Sandbox:
    from pergola import sandbox

    running = sandbox.find(name)
    if running is None:
        command = "pergola sandbox start" + (f" --name {name}" if name != "default" else "")
        raise sandbox.SandboxError(f'no sandbox "{name}" is running; start it with `{command}`')
    return running
