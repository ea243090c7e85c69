"""`pergola aws plan`: show what would be created, changed, kept, skipped or deleted, and why."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from cyclopts import Parameter

from pergola.cli.aws.subject import (
    DEFAULT_ACCOUNT,
    DEFAULT_SOURCE,
    Account,
    AwsCheckError,
    Source,
    Subject,
    observed,
    read_subject,
)
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.flow import Graph
    from pergola.flow.picture import Notes
    from pergola.providers.aws.preflight import Finding

Output = Annotated[Literal["tree", "table", "json"], Parameter(alias="-o")]
Flag = Annotated[bool, Parameter(negative="")]

_FATES: Final = ("would create", "would change", "would delete", "keep", "skip", "failed")


class Plan(NamedTuple):
    """The plan of a flow.

    Attributes:
        findings: of the preflight checks; empty for a deletion.
    """

    graph: "Graph"
    notes: "Notes"
    findings: "list[Finding]"


def plan(
    resource: str = "",
    /,
    *,
    source: Source = DEFAULT_SOURCE,
    delete: Flag = False,
    dot: Flag = False,
    mermaid: Flag = False,
    output: Output = "tree",
    account: Account = DEFAULT_ACCOUNT,
) -> None:
    """Show what a reconciliation or deletion would do in AWS, step by step; only reads.

    Exits with 1 if a finding blocks the reconciliation.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    delete
        Plan the deletion.
    dot
        Print the graph for Graphviz.
    mermaid
        Print the graph for Mermaid.
    output
        `tree` or `table` for people, `json` for programs.
    """
    if dot and mermaid:
        raise AwsCheckError("give either --dot or --mermaid")

    async def main() -> Plan:
        subject = await read_subject(resource, source, account.aws_credentials)
        return await _foreseen(subject, account.endpoint_url, delete=delete)

    found = asyncio.run(main())
    say(_rendered(found, "dot" if dot else "mermaid" if mermaid else output), end="")
    if any(finding.blocks for finding in found.findings):
        sys.exit(1)


async def _foreseen(subject: Subject, endpoint_url: str, *, delete: bool) -> Plan:
    from pergola.flow import Graph
    from pergola.providers.aws.flows.delete import delete_steps
    from pergola.providers.aws.flows.reconcile import reconcile_steps
    from pergola.providers.aws.flows.run import DELETION, RECONCILIATION, foresee
    from pergola.providers.aws.preflight import findings
    from pergola.providers.aws.resources.step import graph_of
    from pergola.providers.aws.state import is_empty

    if subject.cluster is None:
        say("no Cluster found: assuming IPv4, and planning without ranges", file=sys.stderr)
    async with observed(subject, endpoint_url) as work:
        if delete and is_empty(work.state):
            return Plan(Graph(DELETION), {}, [])
        steps = delete_steps(work.desired, work.state) if delete else reconcile_steps(work.desired)
        graph = graph_of(DELETION if delete else RECONCILIATION, steps, work)
        found = [] if delete else findings(work.desired, work.snapshot)
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
        return f"{found.graph.name}: nothing was ever created, so there is nothing to do\n"
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
        return "nothing would be done until the errors are fixed"
    counted = Counter(str(note.fate) for note in found.notes.values())
    parts = [f"{fate}: {counted[fate]}" for fate in _FATES if counted[fate]]
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
    shown = {"flow": found.graph.name, "steps": steps, "findings": rows}
    return orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode() + "\n"
