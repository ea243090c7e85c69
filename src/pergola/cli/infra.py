"""`pergola infra`: who manages a cluster's infrastructure, is it complete, and taking it over."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, Key
    from pergola.externally_managed.inspection import Finding, Seen
    from pergola.externally_managed.kinds import Managed
    from pergola.kube.client import Client

_WATCH_SECONDS: Final = 10.0

Output = Annotated[Literal["table", "json"], Parameter(alias="-o")]
Namespace = Annotated[str, Parameter(alias="-n")]
Kind = Annotated[str, Parameter(help="With its group: AWSCluster.infrastructure.cluster.x-k8s.io.")]

app: Final = App(
    name="infra",
    help="Look after cluster infrastructure of Cluster API that is managed externally.",
    help_format="plaintext",
)


class InfraError(Exception):
    """The command cannot do what it was asked for; the text says why and what to do."""


def infra_manager(
    *,
    kind: Annotated[list[str] | None, Parameter(negative="")] = None,
    name: str = "pergola",
    namespace: Namespace = "",
    lease_namespace: str = "",
    health_port: int = 8081,
    metrics_port: int = 8080,
    bind: str = "",
    aws_credentials: str = "",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Fill InfraClusters of Cluster API from existing networks, and keep them up to date.

    Manages InfraClusters whose annotation cluster.x-k8s.io/managed-by has the given name, and
    those of other managers that a user has declared ready. Never creates, changes or deletes any
    part of a network. Runs until SIGTERM or SIGINT.

    Parameters
    ----------
    kind
        A kind of InfraClusters with its group, which is required; may be given several times.
    name
        The value of the annotation on InfraClusters of this manager.
    namespace
        Manage only InfraClusters of this namespace.
    lease_namespace
        The namespace of the Lease with which replicas elect a leader; required for more than one.
    health_port
        The port of /healthz and /readyz.
    metrics_port
        The port of /metrics.
    bind
        The address of both; all addresses unless given.
    aws_credentials
        NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey; AWS's usual chain unless
        given.
    kubeconfig
        The management cluster, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    from pergola.externally_managed.app import LEASE, Options, run
    from pergola.externally_managed.aws import AwsSettings
    from pergola.externally_managed.kinds import parse_kind
    from pergola.externally_managed.manager import Settings
    from pergola.kube.kubeconfig import load
    from pergola.runtime.logging import configure
    from pergola.runtime.process.options import Address, Election, ProcessOptions

    if not kind:
        raise InfraError(
            "--kind is required: a kind of InfraClusters with its group, as in "
            "`pergola infra-manager --kind AWSCluster.infrastructure.cluster.x-k8s.io`"
        )
    configure("info", "json" if not sys.stderr.isatty() else "text")
    options = Options(
        kinds=tuple(parse_kind(text) for text in kind),
        settings=Settings(name=name, namespace=namespace),
        aws=AwsSettings(credentials=_secret_key(aws_credentials)),
        process=ProcessOptions(
            health=Address(bind, health_port),
            metrics=Address(bind, metrics_port),
            election=Election(namespace=lease_namespace, name=LEASE) if lease_namespace else None,
        ),
    )
    run(load(kubeconfig, context), options)


@app.command
def status(
    name: str,
    *,
    kind: Kind,
    namespace: Namespace = "default",
    output: Output = "table",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Show who manages an InfraCluster, and why its Cluster is or is not ready.

    Parameters
    ----------
    name
        The InfraCluster.
    namespace
        Its namespace.
    output
        `table` for people, `json` for programs.
    kubeconfig
        The management cluster, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """

    async def show(client: "Client", managed: "Managed", crd: "JsonObject", key: "Key") -> None:
        from pergola.externally_managed.inspection import findings, look

        seen = await look(client, managed, crd, key)
        found = findings(seen)
        _print_json(_described(seen, found)) if output == "json" else _print_status(seen, found)

    _with_object(name, namespace, kind, kubeconfig, context, show)


@app.command
def check(
    name: str,
    *,
    kind: Kind,
    namespace: Namespace = "default",
    output: Output = "table",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Check an InfraCluster and its network against Cluster API's contract.

    Reads everything anew and writes nothing. Exits with 1 if anything is wrong.

    Parameters
    ----------
    name
        The InfraCluster.
    namespace
        Its namespace.
    output
        `table` for people, `json` for programs.
    kubeconfig
        The management cluster, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    broken: list[str] = []

    async def verify(client: "Client", managed: "Managed", crd: "JsonObject", key: "Key") -> None:
        from pergola.externally_managed.inspection import Finding, errors, findings

        seen, warnings = await _look_at_network(client, managed, crd, key)
        found = [*findings(seen), *(Finding("warning", text) for text in warnings)]
        broken.extend(errors(found))
        if output == "json":
            _print_json(_described(seen, found))
        elif found:
            _print_findings(found)
        else:
            print(f"{managed.gvk.kind} {key} and its network are complete")

    _with_object(name, namespace, kind, kubeconfig, context, verify)
    if broken:
        sys.exit(1)


@app.command
def iam_policy() -> None:
    """Print the IAM policy that lets an identity read networks in AWS, and do nothing else."""
    from pergola.externally_managed.aws import iam_policy as policy

    _print_json(policy())


@app.command
def adopt(
    name: str,
    *,
    kind: Kind,
    namespace: Namespace = "default",
    manager: str = "pergola",
    source: str = "",
    yes: Annotated[bool, Parameter(negative="")] = False,
    take_over: Annotated[bool, Parameter(negative="")] = False,
    force: Annotated[bool, Parameter(negative="")] = False,
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Take an InfraCluster over from its provider, for good.

    Sets the annotation cluster.x-k8s.io/managed-by: from then on the provider leaves the object
    alone. There is no way back.

    Parameters
    ----------
    name
        The InfraCluster.
    namespace
        Its namespace.
    manager
        The name of the new manager.
    source
        What describes the network: configmap/NAME or secret/NAME.
    yes
        Do not ask.
    take_over
        Also if another external manager has it.
    force
        Also if its network is incomplete.
    kubeconfig
        The management cluster, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """

    async def take(client: "Client", managed: "Managed", crd: "JsonObject", key: "Key") -> None:
        from pergola.externally_managed.adoption import Adoption, AdoptionRefused

        adoption = Adoption(client, managed, manager, source)
        try:
            seen = await adoption.prepare(crd, key, take_over=take_over, force=force)
        except AdoptionRefused as refused:
            raise InfraError(str(refused)) from None
        print(f"{managed.gvk.kind} {key} will be managed by {manager}:")
        for line in adoption.consequences(seen):
            print(f"  - {line}")
        question = "This cannot be undone. Type the name to go on: "
        if not yes and await asyncio.to_thread(input, question) != name:
            raise InfraError("nothing was changed")
        adopted = await adoption.apply(seen)
        print(f"Adopted. Watching for {_WATCH_SECONDS:.0f} s whether the provider lets go …")
        writers = await adoption.writers_after(adopted, _WATCH_SECONDS)
        if writers:
            raise InfraError(
                f"{', '.join(writers)} wrote to it since: the provider does not respect the "
                "annotation; stop it, or update it"
            )
        print("Nobody else wrote to it.")

    _with_object(name, namespace, kind, kubeconfig, context, take)


def _secret_key(text: str) -> "Key | None":
    """`NAMESPACE/NAME` as a key; None if it is empty."""
    from pergola.api.objects import Key

    namespace, separator, name = text.partition("/")
    if text and not (namespace and separator and name):
        raise InfraError(f'--aws-credentials is "{text}"; write it as NAMESPACE/NAME of a Secret')
    return Key(namespace, name) if text else None


def _with_object(
    name: str,
    namespace: str,
    kind: str,
    kubeconfig: Path | None,
    context: str | None,
    act: "Callable[[Client, Managed, JsonObject, Key], Coroutine[Any, Any, None]]",
) -> None:
    """Does something with an InfraCluster whose kind is looked up first."""

    async def main() -> None:
        from pergola.api.objects import Key
        from pergola.externally_managed.kinds import managed_kind, parse_kind, read_crd
        from pergola.kube.client import Client
        from pergola.kube.kubeconfig import load

        wanted = parse_kind(kind)
        async with Client.connect(load(kubeconfig, context)) as client:
            managed = await managed_kind(client, wanted)
            await act(client, managed, await read_crd(client, wanted), Key(namespace, name))

    asyncio.run(main())


async def _look_at_network(
    client: "Client", managed: "Managed", crd: "JsonObject", key: "Key"
) -> "tuple[Seen, list[str]]":
    """What there is to know of an InfraCluster and its network, and warnings beside."""
    from pergola.api.cluster_api import SOURCE
    from pergola.api.objects import annotations_of
    from pergola.externally_managed.aws import AwsSource, asks_aws
    from pergola.externally_managed.inspection import look
    from pergola.externally_managed.sources import PlainSource

    obj = await client.get(managed.gvk, key)
    if asks_aws(obj):
        async with AwsSource(client) as aws:
            seen = await look(client, managed, crd, key, aws)
            return seen, [] if seen.source_problems else await aws.warnings(obj)
    source = PlainSource(client) if annotations_of(obj).get(SOURCE) else None
    return await look(client, managed, crd, key, source), []


def _described(seen: "Seen", found: "list[Finding]") -> "JsonObject":
    from pergola.api.objects import Key, finalizers_of
    from pergola.externally_managed.contract import endpoint_of
    from pergola.externally_managed.inspection import is_ready, writers
    from pergola.externally_managed.predicate import is_paused, manager_of

    endpoint = endpoint_of(seen.obj)
    return {
        "kind": seen.managed.gvk.kind,
        "name": str(Key.of(seen.obj)),
        "managedBy": manager_of(seen.obj),
        "contract": seen.managed.contract.version,
        "apiVersion": seen.managed.gvk.api_version,
        "cluster": str(seen.cluster_key) if seen.cluster_key else None,
        "phase": _phase(seen),
        "paused": is_paused(seen.obj, seen.cluster),
        "ready": is_ready(seen),
        "endpoint": str(endpoint) if endpoint.is_valid else None,
        "failureDomains": _domains(seen),
        "finalizers": finalizers_of(seen.obj),
        "writers": [{"name": name, "last": last} for name, last in writers(seen.obj)],
        "findings": [finding._asdict() for finding in found],
    }


def _phase(seen: "Seen") -> str:
    from pergola.api.objects import map_at

    return str(map_at(seen.cluster or {}, "status").get("phase") or "")


def _domains(seen: "Seen") -> list[str]:
    from pergola.externally_managed.contract import ContractError, failure_domains_of

    try:
        return [d.name for d in failure_domains_of(seen.obj, seen.managed.contract.version)]
    except ContractError:
        return []


def _print_status(seen: "Seen", found: "list[Finding]") -> None:
    from rich.console import Console
    from rich.table import Table

    told = _described(seen, found)
    table = Table(title=f"{told['kind']} {told['name']}", title_justify="left", show_header=False)
    manager = told["managedBy"]
    rows = {
        "managed by": "its provider" if manager is None else manager or '"" (an external manager)',
        "contract": f"{told['contract']}, read as {told['apiVersion']}",
        "cluster": f"{told['cluster'] or 'none'} {told['phase']}".strip(),
        "paused": "yes" if told["paused"] else "no",
        "ready": "yes" if told["ready"] else "no",
        "endpoint": told["endpoint"] or "none",
        "failure domains": ", ".join(told["failureDomains"]) or "none",
        "finalizers": ", ".join(told["finalizers"]) or "none",
        "last writers": ", ".join(f"{w['name']} ({w['last']})" for w in told["writers"]) or "none",
    }
    for label, value in rows.items():
        table.add_row(label, value)
    Console(highlight=False).print(table)
    _print_findings(found)


def _print_findings(found: "list[Finding]") -> None:
    for finding in found:
        print(f"{finding.severity}: {finding.text}")


def _print_json(value: "JsonObject") -> None:
    import orjson

    print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
