"""`pergola network`: what the caller of a network extension does, by hand and watched."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.extension_api.caller import Waiting
    from pergola.kube.client import Client
    from pergola.runtime.clock import Clock

NOT_REACHED: Final = 2


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Target:
    """Which Network, and in which cluster.

    Attributes:
        file: Manifest of the Network; - reads it from the standard input.
        namespace: Its namespace, where the manifest names none.
        kubeconfig: The seed, as kubectl finds it unless given.
        context: Context of that kubeconfig.
        extension: The extension whose heartbeat tells whether it runs; any whose name ends with the
            type of the Network unless given.
        extension_namespace: Where that extension runs; looked for everywhere unless given.
    """

    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)]
    namespace: Annotated[str, Parameter(alias="-n")] = ""
    kubeconfig: Path | None = None
    context: str | None = None
    extension: str = ""
    extension_namespace: str = ""


Timeout = Annotated[float, Parameter(help="Seconds until the wait is given up.")]
NoWait = Annotated[bool, Parameter(name="--no-wait", negative="")]
StateFile = Annotated[Path | None, Parameter(name="--state")]
PATIENCE: Final = 180.0

app: Final = App(
    name="network",
    help="Ask a network extension for a Network, and watch it work.",
    help_format="plaintext",
)


class NetworkError(Exception):
    """The command cannot do what it was asked for; the text says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a command works with."""

    client: "Client"
    network: "JsonObject"
    key: "Key"
    clock: "Clock"
    waiting: "Waiting"


Task: TypeAlias = Callable[[Work], Awaitable[None]]


@app.command
def reconcile(*, target: Target, timeout: Timeout = PATIENCE, no_wait: NoWait = False) -> None:
    """Create a Network or replace its spec, ask for it to be reconciled, and wait until it is.

    Exits with 2 if the Network does not become ready.

    Parameters
    ----------
    no_wait
        Only ask.
    """

    async def work(on: Work) -> None:
        from pergola.extension_api.caller import NETWORK, deploy, wait_ready

        request = await deploy(on.client, NETWORK, on.network, on.clock)
        if no_wait:
            print(f"Network {on.key} is asked to be reconciled")
            return
        await wait_ready(on.client, NETWORK, on.key, on.waiting, expected=request.timestamp)
        print(f"Network {on.key} is ready")

    _run(target, timeout, work)


@app.command
def wait(*, target: Target, timeout: Timeout = PATIENCE) -> None:
    """Wait until what was asked of a Network last is done.

    Exits with 2 if the Network does not become ready.
    """

    async def work(on: Work) -> None:
        from pergola.extension_api.caller import NETWORK, wait_ready

        await wait_ready(on.client, NETWORK, on.key, on.waiting)
        print(f"Network {on.key} is ready")

    _run(target, timeout, work)


@app.command
def status(
    *,
    target: Target,
    output: Annotated[Literal["table", "json"], Parameter(alias="-o")] = "table",
) -> None:
    """Show what the extension reports of a Network, and why it is not ready.

    Parameters
    ----------
    output
        `table` for people, `json` for programs.
    """

    async def work(on: Work) -> None:
        from pergola.cli.network.status import described, print_json, print_table
        from pergola.extension_api.caller import NETWORK, readiness

        obj = await on.client.get(NETWORK.gvk, on.key)
        problem = readiness(obj).problem
        hint = await on.waiting.explain(obj) if problem else ""
        told = described(obj, problem, hint)
        print_json(told) if output == "json" else print_table(told)

    _run(target, PATIENCE, work)


@app.command
def migrate(
    *,
    target: Target,
    timeout: Timeout = PATIENCE,
    state: StateFile = None,
    delete: Annotated[bool, Parameter(name="--delete", negative="")] = False,
) -> None:
    """Take a Network from its seed, and write down what the next seed needs to restore it.

    Exits with 2 if it does not come about.

    Parameters
    ----------
    state
        The ShootState to write; it can hold secrets, and only its owner may read it.
    delete
        Delete the Network afterwards; what its extension made in the Shoot stays.
    """

    async def work(on: Work) -> None:
        from pergola.cli.network.file import write_secretly
        from pergola.extension_api.caller import NETWORK, abandon, leave

        shoot_state = await leave(on.client, NETWORK, on.key, on.clock, on.waiting)
        if shoot_state is None:
            raise NetworkError(f"there is no Network {on.key} to migrate")
        if state is not None:
            write_secretly(state, shoot_state)
        elif delete and _remembers(shoot_state):
            raise NetworkError(
                f"Network {on.key} has a state, which would be lost: say where to write it "
                "with --state FILE"
            )
        print(f"Network {on.key} is migrated{f', its state is in {state}' if state else ''}")
        if delete:
            await abandon(on.client, NETWORK, on.key, on.clock, on.waiting)
            print(f"Network {on.key} is deleted")

    _run(target, timeout, work)


@app.command
def restore(
    *,
    target: Target,
    timeout: Timeout = PATIENCE,
    state: StateFile = None,
    no_wait: NoWait = False,
) -> None:
    """Bring a Network to this seed, with the state that it left the last one with, and wait.

    Exits with 2 if the Network does not become ready.

    Parameters
    ----------
    state
        The ShootState that has it; without one it is restored without a state.
    no_wait
        Only ask.
    """

    async def work(on: Work) -> None:
        from pergola.cli.network.file import read_one
        from pergola.extension_api.caller import NETWORK, SHOOT_STATE, wait_ready
        from pergola.extension_api.caller import restore as ask_to_restore

        shoot_state = read_one(str(state), SHOOT_STATE) if state else None
        request = await ask_to_restore(on.client, NETWORK, on.network, shoot_state, on.clock)
        if no_wait:
            print(f"Network {on.key} is asked to be restored")
            return
        await wait_ready(on.client, NETWORK, on.key, on.waiting, expected=request.timestamp)
        print(f"Network {on.key} is restored")

    _run(target, timeout, work)


@app.command
def delete(*, target: Target, timeout: Timeout = PATIENCE, no_wait: NoWait = False) -> None:
    """Confirm that a Network may be deleted, delete it, and wait until it is gone.

    Exits with 2 if it stays.

    Parameters
    ----------
    no_wait
        Only ask.
    """

    async def work(on: Work) -> None:
        from pergola.extension_api.caller import NETWORK, destroy, wait_deleted

        if not await destroy(on.client, NETWORK, on.key, on.clock):
            print(f"there is no Network {on.key}")
            return
        if no_wait:
            print(f"Network {on.key} is asked to go")
            return
        await wait_deleted(on.client, NETWORK, on.key, on.waiting)
        print(f"Network {on.key} is deleted")

    _run(target, timeout, work)


def _run(target: Target, timeout: float, task: Task) -> None:
    from pergola.extension_api.caller import NotDeleted, NotMigrated, NotReady

    with _told_clearly():
        try:
            asyncio.run(_work(target, timeout, task))
        except (NotReady, NotMigrated, NotDeleted) as error:
            print(f"pergola: {error}", file=sys.stderr)
            sys.exit(NOT_REACHED)


async def _work(target: Target, timeout: float, task: Task) -> None:
    from pergola.api.objects import Key, name_of, namespace_of
    from pergola.cli.network.file import read_one
    from pergola.cli.network.progress import shown
    from pergola.extension_api.caller import NETWORK, Extension, Waiting, explainer
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load
    from pergola.runtime.clock import SystemClock

    network, config = read_one(target.file, NETWORK.gvk), load(target.kubeconfig, target.context)
    said, stated = target.namespace, namespace_of(network)
    if said and stated and said != stated:
        raise NetworkError(f"{target.file} is for namespace {stated}, but -n says {said}")
    key, clock = Key(said or stated or config.namespace, name_of(network)), SystemClock()
    network["metadata"]["namespace"] = key.namespace
    extension = Extension(name=target.extension, namespace=target.extension_namespace)
    async with Client.connect(config) as client:
        with shown(f"Network {key}") as tell:
            explain = explainer(client, clock, extension)
            waiting = Waiting(timeout=timeout, tell=tell, explain=explain)
            on = Work(client=client, network=network, key=key, clock=clock, waiting=waiting)
            await task(on)


@contextmanager
def _told_clearly() -> Iterator[None]:
    """What the API server says in its own words, in those of somebody at a terminal."""
    from pergola.kube.errors import UnknownKind

    try:
        yield
    except UnknownKind as error:
        raise NetworkError(
            f"the cluster does not know {error.kind.kind} of {error.kind.api_version}: "
            "`pergola crds --apply` installs it; or is this the wrong cluster?"
        ) from error


def _remembers(shoot_state: "JsonObject") -> bool:
    entry = shoot_state["spec"]["extensions"][0]
    return bool(entry.get("state") or entry.get("resources"))
