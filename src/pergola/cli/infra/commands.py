"""`pergola infra`: the manager and the completeness of a cluster's infrastructure, and adoption."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import App, Parameter

from pergola.cli.infra.target import InfraError, Opened, Target, key_of, run
from pergola.cli.output import ListOutput, ShowOutput
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.externally_managed.adoption import Adoption, Writers
    from pergola.externally_managed.inspection import Seen

Flag = Annotated[bool, Parameter(negative="")]

_SETTLE_SECONDS: Final = 5.0
_WATCH_SECONDS: Final = 10.0
_DEFAULTS: Final = Target()

app: Final = App(
    name="infra",
    help="Inspect and adopt externally managed cluster infrastructure of Cluster API.",
)


@app.command
def status(
    name: str = "",
    *,
    target: Target = _DEFAULTS,
    all_namespaces: Annotated[bool, Parameter(alias="-A", negative="")] = False,
    selector: Annotated[str, Parameter(alias="-l")] = "",
    watch: Annotated[bool, Parameter(alias="-w", negative="")] = False,
    output: ListOutput = "table",
) -> None:
    """Show who manages an InfraCluster, and why its Cluster is or is not ready.

    Parameters
    ----------
    name
        NAME or KIND/NAME, such as awscluster/demo; by default all InfraClusters of the kind.
    all_namespaces
        List InfraClusters of all namespaces.
    selector
        List only InfraClusters with these labels.
    watch
        Print a line for each change, until interrupted.
    """
    from pergola.cli.infra import show

    if name.endswith("/"):
        raise InfraError(f'"{name}" has no name; write KIND/NAME')
    if target.namespace and all_namespaces:
        raise InfraError("give either --namespace or --all-namespaces")
    namespace = "" if all_namespaces else target.chosen_namespace()

    async def print_status(opened: Opened, name: str) -> None:
        if watch:
            await show.changes(opened, namespace, name, selector)
        elif name:
            await show.status(opened, key_of(target, name), output)
        else:
            await show.table(opened, namespace, selector, output)

    run(target, name, print_status)


@app.command
def check(name: str, *, target: Target = _DEFAULTS, output: ShowOutput = "text") -> None:
    """Check an InfraCluster and its network against Cluster API's contract.

    Reads everything again and writes nothing. Exits with 1 if it finds errors.

    Parameters
    ----------
    name
        NAME or KIND/NAME, such as awscluster/demo.
    """
    from pergola.cli.infra import show

    broken = False

    async def verify(opened: Opened, name: str) -> None:
        nonlocal broken
        broken = not await show.check(opened, key_of(target, name), output)

    run(target, name, verify)
    if broken:
        sys.exit(1)


@app.command
def iam_policy(*, machines: Flag = False) -> None:
    """Print the IAM policy that allows an identity to read networks in AWS, and nothing else.

    Parameters
    ----------
    machines
        Print the policy for the AWS provider instead: the permissions to manage machines in
        externally managed networks.
    """
    from pergola.cli.infra.show import print_json
    from pergola.externally_managed.aws import iam_policy as reading
    from pergola.externally_managed.aws import machine_policy

    print_json(machine_policy() if machines else reading())


@app.command
def adopt(
    name: str,
    *,
    target: Target = _DEFAULTS,
    manager: str = "pergola",
    source: str = "",
    yes: Flag = False,
    take_over: Flag = False,
    force: Flag = False,
) -> None:
    """Take an InfraCluster over from its provider, for good.

    Sets the annotation cluster.x-k8s.io/managed-by: from then on the provider leaves the object
    alone. This cannot be undone.

    Parameters
    ----------
    name
        NAME or KIND/NAME, such as awscluster/demo.
    manager
        The name of the new manager.
    source
        The source of the network: configmap/NAME, secret/NAME, or aws for AWSClusters.
    yes
        Do not ask for confirmation.
    take_over
        Adopt it even if another external manager has it.
    force
        Adopt it even if its network is incomplete.
    """

    async def take(opened: Opened, name: str) -> None:
        from pergola.api.cluster_api import SOURCE
        from pergola.api.objects import annotations_of
        from pergola.externally_managed.adoption import Adoption

        key = key_of(target, name)
        obj = await opened.client.get(opened.managed.gvk, key)
        reference = source or annotations_of(obj).get(SOURCE, "")
        async with opened.source(reference) as network:
            adoption = Adoption(
                opened.client, opened.managed, manager, network, reference=reference
            )
            seen = await adoption.prepare(opened.crd, key, take_over=take_over, force=force)
            say(f"{opened.managed.gvk.kind} {key} will be managed by {manager}:")
            for line in adoption.consequences(seen):
                say(f"  - {line}")
            if not yes:
                await _confirm(name)
            await _adopt(adoption, seen)

    run(target, name, take)


async def _confirm(name: str) -> None:
    question = "This cannot be undone. Type the name to go on (--yes skips this question): "
    try:
        answer = await asyncio.to_thread(input, question)
    except EOFError:
        raise InfraError(
            "nothing was changed: there is no input to confirm with; add --yes"
        ) from None
    if answer.strip() != name:
        raise InfraError("nothing was changed")


async def _adopt(adoption: "Adoption", seen: "Seen") -> None:
    adopted = await adoption.patch(seen)
    say(f"Adopted. Watching for {_WATCH_SECONDS:.0f} s whether the provider stops writing …")
    writers: Writers = await adoption.writers_after(adopted, _SETTLE_SECONDS, _WATCH_SECONDS)
    if writers.early:
        say(f"{', '.join(writers.early)} finished earlier work.")
    if writers.late:
        say(
            f"warning: {', '.join(writers.late)} still writes to it: either retries that were "
            "queued before, or a provider that does not respect the annotation. Look at the last "
            "writers in `pergola infra status` in a few minutes; if they still write, stop or "
            "update the provider.",
            file=sys.stderr,
        )
    if not writers.early and not writers.late:
        say("No other writer changed it.")
