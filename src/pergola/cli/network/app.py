"""`pergola network`: the operations of a network extension's caller, from the command line."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from cyclopts import App, Parameter

from pergola.cli.network.target import NetworkError, Target, key_of, manifest_of, stored
from pergola.cli.network.work import Work
from pergola.cli.output import ListOutput
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject

NOT_REACHED: Final = 2


Name = Annotated[str, Parameter(name="NETWORK", help="network/NAME or NAME, instead of -f.")]
Timeout = Annotated[float, Parameter(help="Time limit of the wait in seconds.")]
NoWait = Annotated[bool, Parameter(name="--no-wait", negative="")]
StateFile = Annotated[Path | None, Parameter(name="--state")]
PATIENCE: Final = 180.0
_DEFAULT: Final = Target()

app: Final = App(
    name="network",
    help="Request Networks from their extensions, and follow the progress.",
)


Task: TypeAlias = Callable[[Work], Awaitable[None]]


@app.command
def reconcile(
    network: Name = "",
    /,
    *,
    target: Target = _DEFAULT,
    timeout: Timeout = PATIENCE,
    no_wait: NoWait = False,
) -> None:
    """Create a Network or replace its spec, request a reconciliation, and wait for it.

    Exits with 2 if the Network does not become ready.

    Parameters
    ----------
    no_wait
        Request it, and do not wait.
    """

    async def work(on: Work) -> None:
        from pergola.extension_api.caller import NETWORK, deploy, wait_ready

        request = await deploy(on.client, NETWORK, on.manifest, on.clock)
        if no_wait:
            say(f"reconciliation of Network {on.key} requested")
            return
        await wait_ready(on.client, NETWORK, on.key, on.waiting, expected=request.timestamp)
        say(f"Network {on.key} is ready")

    _run(target, network, timeout, work)


@app.command
def wait(network: Name = "", /, *, target: Target = _DEFAULT, timeout: Timeout = PATIENCE) -> None:
    """Wait until the last request to a Network is done.

    Exits with 2 if the Network does not become ready.
    """

    async def work(on: Work) -> None:
        from pergola.extension_api.caller import NETWORK, wait_ready

        await wait_ready(on.client, NETWORK, on.key, on.waiting)
        say(f"Network {on.key} is ready")

    _run(target, network, timeout, work)


@app.command
def status(
    network: Name = "",
    /,
    *,
    target: Target = _DEFAULT,
    all_namespaces: Annotated[bool, Parameter(alias="-A", negative="")] = False,
    selector: Annotated[str, Parameter(alias="-l")] = "",
    watch: Annotated[bool, Parameter(alias="-w", negative="")] = False,
    output: ListOutput = "table",
) -> None:
    """Show what extensions report about Networks, and why one is not ready.

    Without a name, all Networks of the namespace are listed.

    Parameters
    ----------
    all_namespaces
        List the Networks of all namespaces.
    selector
        List only Networks with these labels, such as a=b,c.
    watch
        Show the Network again whenever it changes, until interrupted.
    """
    from pergola.cli.network.status import show_list, show_one

    if network or target.file:
        if all_namespaces or selector:
            raise NetworkError("-A and -l list Networks; leave them out to show one by its name")
        _run(target, network, PATIENCE, lambda on: show_one(on, output=output, watch=watch))
        return
    if watch:
        raise NetworkError("-w watches one Network; name it: network/NAME")
    with _clear_errors():
        asyncio.run(show_list(target, selector, output, all_namespaces=all_namespaces))


@app.command
def migrate(
    network: Name = "",
    /,
    *,
    target: Target = _DEFAULT,
    timeout: Timeout = PATIENCE,
    state: StateFile = None,
    delete: Annotated[bool, Parameter(name="--delete", negative="")] = False,
) -> None:
    """Take a Network from its seed, and save what the next seed needs to restore it.

    Exits with 2 if the migration fails.

    Parameters
    ----------
    state
        The ShootState to write; it may contain secrets, and only its owner can read it.
    delete
        Delete the Network afterwards; the objects in the Shoot stay.
    """

    async def work(on: Work) -> None:
        from pergola.cli.network.file import write_secretly
        from pergola.extension_api.caller import NETWORK, abandon, leave

        shoot_state = await leave(on.client, NETWORK, on.key, on.clock, on.waiting)
        if shoot_state is None:
            raise NetworkError(f"Network {on.key} does not exist, so it cannot be migrated")
        if state is not None:
            write_secretly(state, shoot_state)
        elif delete and _remembers(shoot_state):
            raise NetworkError(
                f"Network {on.key} has a state, which would be lost: name a file for it with "
                "--state FILE"
            )
        say(f"Network {on.key} is migrated{f', its state is in {state}' if state else ''}")
        if delete:
            await abandon(on.client, NETWORK, on.key, on.clock, on.waiting)
            say(f"Network {on.key} is deleted")

    _run(target, network, timeout, work)


@app.command
def restore(
    network: Name = "",
    /,
    *,
    target: Target = _DEFAULT,
    timeout: Timeout = PATIENCE,
    state: StateFile = None,
    no_wait: NoWait = False,
) -> None:
    """Restore a Network on this seed with the state from its last one, and wait.

    Exits with 2 if the Network does not become ready.

    Parameters
    ----------
    state
        The ShootState with the state; by default the Network is restored without a state.
    no_wait
        Request it, and do not wait.
    """

    async def work(on: Work) -> None:
        from pergola.cli.network.file import read_one
        from pergola.extension_api.caller import NETWORK, SHOOT_STATE, wait_ready
        from pergola.extension_api.caller import restore as ask_to_restore

        shoot_state = read_one(str(state), SHOOT_STATE) if state else None
        request = await ask_to_restore(on.client, NETWORK, on.manifest, shoot_state, on.clock)
        if no_wait:
            say(f"restoration of Network {on.key} requested")
            return
        await wait_ready(on.client, NETWORK, on.key, on.waiting, expected=request.timestamp)
        say(f"Network {on.key} is restored")

    _run(target, network, timeout, work)


@app.command
def delete(
    network: Name = "",
    /,
    *,
    target: Target = _DEFAULT,
    timeout: Timeout = PATIENCE,
    no_wait: NoWait = False,
) -> None:
    """Confirm that a Network may be deleted, delete it, and wait until it is gone.

    Exits with 2 if it is not gone in time.

    Parameters
    ----------
    no_wait
        Request it, and do not wait.
    """

    async def work(on: Work) -> None:
        from pergola.extension_api.caller import NETWORK, destroy, wait_deleted

        if not await destroy(on.client, NETWORK, on.key, on.clock):
            say(f"Network {on.key} does not exist")
            return
        if no_wait:
            say(f"deletion of Network {on.key} requested")
            return
        await wait_deleted(on.client, NETWORK, on.key, on.waiting)
        say(f"Network {on.key} is deleted")

    _run(target, network, timeout, work)


def _run(target: Target, network: str, timeout: float, task: Task) -> None:
    from pergola.extension_api.caller import NotDeleted, NotMigrated, NotReady

    with _clear_errors():
        try:
            asyncio.run(_work(target, network, timeout, task))
        except (NotReady, NotMigrated, NotDeleted) as error:
            say(f"pergola: {error}", file=sys.stderr)
            sys.exit(NOT_REACHED)


async def _work(target: Target, network: str, timeout: float, task: Task) -> None:
    from pergola.cli.network.progress import shown
    from pergola.extension_api.caller import Extension, Waiting, explainer
    from pergola.kube.client import Client
    from pergola.runtime.clock import SystemClock

    manifest = manifest_of(target, network)
    config, clock = target.config(), SystemClock()
    key = key_of(target, network, manifest, config.namespace)
    extension = Extension(name=target.extension, namespace=target.extension_namespace)
    async with Client.connect(config) as client:
        manifest = manifest or await stored(client, key)
        with shown(f"Network {key}") as report:
            explain = explainer(client, clock, extension)
            waiting = Waiting(timeout=timeout, report=report, explain=explain)
            on = Work(client=client, network=manifest, key=key, clock=clock, waiting=waiting)
            await task(on)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Explain errors of the API server that users can fix."""
    from pergola.kube.errors import UnknownKind

    try:
        yield
    except UnknownKind as error:
        raise NetworkError(
            f"the cluster does not serve {error.kind.kind} of {error.kind.api_version}: `pergola "
            "crds --apply` installs it; or is this the wrong cluster?"
        ) from error


def _remembers(shoot_state: "JsonObject") -> bool:
    entry = shoot_state["spec"]["extensions"][0]
    return bool(entry.get("state") or entry.get("resources"))
