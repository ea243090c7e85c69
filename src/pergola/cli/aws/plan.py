"""`pergola aws plan`: what would be created, changed, kept, skipped or deleted, and why."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from cyclopts import Parameter

from pergola.cli.aws.asked import Asked, AwsCheckError, asked_at, looked, place_of

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.flow import Graph
    from pergola.flow.picture import Notes
    from pergola.providers.aws.preflight import Finding

Output = Annotated[Literal["tree", "table", "json"], Parameter(alias="-o")]
Namespace = Annotated[str, Parameter(alias="-n")]
Flag = Annotated[bool, Parameter(negative="")]

_CHANGES: Final = ("would create", "would change", "would delete")


class Plan(NamedTuple):
    """What a flow would do.

    Attributes:
        findings: what is wrong with the account, or may be; none for a deletion.
    """

    graph: "Graph"
    notes: "Notes"
    findings: "list[Finding]"


def plan(
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = "",
    name: str = "",
    namespace: Namespace = "default",
    delete: Flag = False,
    dot: Flag = False,
    mermaid: Flag = False,
    output: Output = "tree",
    aws_credentials: str = "",
    endpoint_url: str = "",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Show what would become of an Infrastructure in AWS, step by step; only reads.

    Exits with 1 if the account is not as it has to be, so that nothing would be created.

    Parameters
    ----------
    file
        A manifest with an Infrastructure; - reads it from the standard input. A Cluster beside it
        tells ranges and IP families, a Secret beside it the credentials.
    name
        An Infrastructure in a cluster, in place of a file.
    namespace
        Its namespace.
    delete
        What its deletion would do.
    dot
        Print the graph in Graphviz' language.
    mermaid
        Print the graph in Mermaid's language.
    output
        `tree` or `table` for people, `json` for programs.
    aws_credentials
        NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey, or `environment` for AWS's
        usual chain. Without it the Secret that the Infrastructure names; with a file that does not
        hold it, AWS's usual chain.
    endpoint_url
        Where all services of AWS are, if not at AWS.
    kubeconfig
        The seed, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    place = place_of(file, name, namespace, aws_credentials, kubeconfig, context)
    if dot and mermaid:
        raise AwsCheckError("give either --dot or --mermaid")

    async def main() -> Plan:
        return await _foreseen(await asked_at(place), endpoint_url, delete=delete)

    found = asyncio.run(main())
    print(_rendered(found, "dot" if dot else "mermaid" if mermaid else output), end="")
    if any(finding.blocks for finding in found.findings):
        sys.exit(1)


async def _foreseen(asked: Asked, endpoint_url: str, *, delete: bool) -> Plan:
    from pergola.flow import Graph
    from pergola.providers.aws.flows.delete import delete_steps
    from pergola.providers.aws.flows.reconcile import reconcile_steps
    from pergola.providers.aws.flows.run import DELETION, RECONCILIATION, foresee
    from pergola.providers.aws.preflight import findings
    from pergola.providers.aws.resources.step import graph_of
    from pergola.providers.aws.state import is_empty

    if asked.cluster is None:
        print("no Cluster beside it: planned as IPv4, and without ranges", file=sys.stderr)
    async with looked(asked, endpoint_url) as work:
        if delete and is_empty(work.state):
            return Plan(Graph(DELETION), {}, [])
        steps = delete_steps(work.wanted, work.state) if delete else reconcile_steps(work.wanted)
        graph = graph_of(DELETION if delete else RECONCILIATION, steps, work)
        found = [] if delete else findings(work.wanted, work.snapshot)
        return Plan(graph, foresee(steps, work), found)


def _rendered(found: Plan, output: str) -> str:
    from pergola.flow import picture

    if output == "json":
        return _json(found)
    if output == "dot":
        return picture.dot(found.graph, found.notes)
    if output == "mermaid":
        return picture.mermaid(found.graph, found.notes)
    drawn = picture.tree if output == "tree" else picture.table
    if not len(found.graph):
        return f"{found.graph.name}: nothing was ever created, and nothing is to be done\n"
    return f"{drawn(found.graph, found.notes)}{_findings(found)}\n{_summary(found)}\n"


def _findings(found: Plan) -> str:
    lines = [
        f"{'error' if finding.blocks else 'hint'}: {finding}\n  {finding.fix}"
        for finding in found.findings
    ]
    return "".join(f"\n{line}" for line in lines) + ("\n" if lines else "")


def _summary(found: Plan) -> str:
    from collections import Counter

    if any(finding.blocks for finding in found.findings):
        return "nothing would be done until the errors are repaired"
    counted = Counter(str(note.fate) for note in found.notes.values())
    parts = [f"{fate}: {counted[fate]}" for fate in (*_CHANGES, "keep", "skip") if counted[fate]]
    return ", ".join(parts)


def _json(found: Plan) -> str:
    import orjson

    dependencies = found.graph.dependencies()
    steps: list[JsonObject] = [
        {
            "name": task.name,
            "fate": str(found.notes[task.name].fate),
            "why": found.notes[task.name].why,
            "after": [each.name for each in dependencies[task.name]],
        }
        for task in found.graph.order()
    ]
    rows: list[JsonObject] = [
        {**finding.cause._asdict(), "fix": finding.fix, "blocks": finding.blocks}
        for finding in found.findings
    ]
    told = {"flow": found.graph.name, "steps": steps, "findings": rows}
    return orjson.dumps(told, option=orjson.OPT_INDENT_2).decode() + "\n"
