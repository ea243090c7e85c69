"""`pergola infra`: who manages a cluster's infrastructure, is it complete, and adopting it."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import App, Parameter

from pergola.cli.infra.target import InfraError, Opened, Target, key_of, run

if TYPE_CHECKING:
    from pergola.externally_managed.adoption import Adoption, Writers
    from pergola.externally_managed.inspection import Seen

Output = Annotated[Literal["table", "json"], Parameter(alias="-o")]
Flag = Annotated[bool, Parameter(negative="")]

_SETTLE_SECONDS: Final = 5.0
_WATCH_SECONDS: Final = 10.0
_DEFAULTS: Final = Target()

app: Final = App(
    name="infra",
    help="Look after cluster infrastructure of Cluster API that is managed externally.",
    help_format="plaintext",
)


@app.command
def status(
    name: str = "",
    *,
    target: Target = _DEFAULTS,
    all_namespaces: Annotated[bool, Parameter(alias="-A", negative="")] = False,
    selector: Annotated[str, Parameter(alias="-l")] = "",
    watch: Annotated[bool, Parameter(alias="-w", negative="")] = False,
    output: Output = "table",
) -> None:
    """Show who manages an InfraCluster, and why its Cluster is or is not ready.

    Parameters
    ----------
    name
        NAME or KIND/NAME, such as awscluster/demo; all InfraClusters of the kind unless given.
    all_namespaces
        List those of all namespaces.
    selector
        List only those with these labels.
    watch
        Print a line for each change, until interrupted.
    output
        `table` for people, `json` for programs.
    """
    from pergola.cli.infra import show

    if name.endswith("/"):
        raise InfraError(f'"{name}" has no name; write KIND/NAME')
    namespace = "" if all_namespaces else target.namespace or "default"

    async def print_status(opened: Opened, name: str) -> None:
        if watch:
            await show.changes(opened, namespace, name, selector)
        elif name:
            await show.status(opened, key_of(target, name), output)
        else:
            await show.table(opened, namespace, selector, output)

    run(target, name, print_status)


@app.command
def check(name: str, *, target: Target = _DEFAULTS, output: Output = "table") -> None:
    """Check an InfraCluster and its network against Cluster API's contract.

    Reads everything anew and writes nothing. Exits with 1 if anything is wrong.

    Parameters
    ----------
    name
        NAME or KIND/NAME, such as awscluster/demo.
    output
        `table` for people, `json` for programs.
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
    """Print the IAM policy that lets an identity read networks in AWS, and do nothing else.

    Parameters
    ----------
    machines
        Print the policy for the AWS provider instead: what it needs to manage machines in
        networks that others manage.
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
        What describes the network: configmap/NAME, secret/NAME, or aws for AWSClusters.
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
            print(f"{opened.managed.gvk.kind} {key} will be managed by {manager}:")
            for line in adoption.consequences(seen):
                print(f"  - {line}")
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
    print(f"Adopted. Watching for {_WATCH_SECONDS:.0f} s whether the provider lets go …")
    writers: Writers = await adoption.writers_after(adopted, _SETTLE_SECONDS, _WATCH_SECONDS)
    if writers.early:
        print(f"{', '.join(writers.early)} finished what it had begun before.")
    if writers.late:
        print(
            f"warning: {', '.join(writers.late)} still writes to it: either retries that were "
            "queued before, or a provider that does not respect the annotation. Look at the last "
            "writers in `pergola infra status` in some minutes; if they are still at it, stop or "
            "update the provider.",
            file=sys.stderr,
        )
    if not writers.early and not writers.late:
        print("Nobody else wrote to it.")
