"""`pergola aws plan`: what a reconciliation or deletion would do in AWS, without doing it.

For a Worker: which machines a change replaces.
"""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter

from pergola.cli.aws.check import finding_rows
from pergola.cli.aws.cloud_config import control_plane_of, controllers, controllers_data
from pergola.cli.aws.subject import (
    DEFAULT_ACCOUNT,
    DEFAULT_SOURCE,
    Account,
    AwsCheckError,
    Source,
    Subject,
    infrastructures_in,
    observed,
    read_subject,
    workers_in,
)
from pergola.cli.manifest_files import read_objects
from pergola.cli.output import ReportOutput, show
from pergola.cli.text import plain_console, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pergola.api.objects import JsonObject
    from pergola.cli.aws.plan_text import Line
    from pergola.flow import Graph
    from pergola.flow.picture import Notes
    from pergola.providers.aws.control_plane.values import Given
    from pergola.providers.aws.preflight import Finding

Flag = Annotated[bool, Parameter(negative="")]

DIFFERENT: Final = 2
_PICTURES: Final = ("tree", "dot", "mermaid")


class Plan(NamedTuple):
    """The plan of a flow.

    Attributes:
        findings: of the preflight checks; empty for a deletion.
        control_plane: what controllers get from the network; None until there is one.
    """

    graph: "Graph"
    notes: "Notes"
    findings: "list[Finding]"
    control_plane: "Given | None" = None

    @property
    def is_blocked(self) -> bool:
        """Whether a finding or a step prevents the run."""
        from pergola.flow.picture import Fate

        fails = any(note.fate is Fate.FAILED for note in self.notes.values())
        return fails or any(finding.blocks for finding in self.findings)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""
        from pergola.flow.picture import Fate

        return all(note.fate in (Fate.KEEP, Fate.SKIP) for note in self.notes.values())


def plan(
    resource: str = "",
    /,
    *,
    source: Source = DEFAULT_SOURCE,
    old: str = "",
    delete: Flag = False,
    everything: Annotated[bool, Parameter(name="--all", negative="")] = False,
    picture: Flag = False,
    dot: Flag = False,
    mermaid: Flag = False,
    output: ReportOutput = "text",
    account: Account = DEFAULT_ACCOUNT,
) -> None:
    """Show what a reconciliation or deletion would do in AWS, step by step; only reads.

    With the changed manifest of a Worker, show which pools replace their machines, because of which
    field, and how many machines at a time in each zone. That needs no AWS.

    Exits with 2 if anything would change, and with 1 if a finding or a step blocks the run.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    old
        A manifest with the current Worker; by default, the one in the cluster.
    delete
        Plan the deletion.
    everything
        Print all steps, also those that change nothing, and why.
    picture
        Draw the graph of the steps as a tree, with what each step would do.
    dot
        Print the graph for Graphviz.
    mermaid
        Print the graph for Mermaid.
    """
    forms = [name for name, given in zip(_PICTURES, (picture, dot, mermaid), strict=True) if given]
    if len(forms) + (output != "text") > 1:
        raise AwsCheckError("give only one of --picture, --dot, --mermaid and --output")

    source.chosen(resource)
    objects = read_objects(source.file) if source.file else []
    if workers_in(objects) and not infrastructures_in(objects):
        if forms or delete:
            raise AwsCheckError("the plan of a Worker has no --delete and no picture")
        _plan_worker(objects, source, old, output, everything=everything)
        return
    if old:
        raise AwsCheckError("--old is for Workers: the current network is read from AWS")

    async def main() -> Plan:
        subject = await read_subject(resource, source, account.aws_credentials, objects)
        return await _foreseen(subject, account.endpoint_url, delete=delete)

    found = asyncio.run(main())
    if forms:
        say(_picture(found, forms[0]), end="")
    else:
        show(output, data=_data(found), text=lambda: _print(found, everything=everything))
    if found.is_blocked:
        sys.exit(1)
    if not found.is_empty:
        sys.exit(DIFFERENT)


def _plan_worker(
    objects: "list[JsonObject]", source: Source, old: str, output: str, *, everything: bool
) -> None:
    from pergola.cli.aws.plan_workers import data, foreseen, lines

    found = asyncio.run(foreseen(objects, source, old))
    show(output, data=data(found), text=lambda: _print_lines(lines(found, everything=everything)))
    if not found.is_empty:
        sys.exit(DIFFERENT)


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
        given = None if delete else control_plane_of(subject)
        return Plan(graph, foresee(steps, work), found, given)


def _picture(found: Plan, form: str) -> str:
    from pergola.flow import picture

    draw = {"tree": picture.tree, "dot": picture.dot, "mermaid": picture.mermaid}[form]
    return draw(found.graph, found.notes)


def _print(found: Plan, *, everything: bool) -> None:
    from pergola.cli.aws.plan_text import lines

    console = plain_console()
    _print_lines(lines(found.graph, found.notes, found.findings, everything=everything))
    if found.control_plane is not None:
        console.print_line("")
        console.print_line("control plane", 0, "bold")
        for text in controllers(found.control_plane):
            console.print_line(text, 2)


def _print_lines(found: "Iterable[Line]") -> None:
    console = plain_console()
    for line in found:
        console.print_line(line.text, line.indent, line.style)


def _data(found: Plan) -> "JsonObject":
    dependencies = found.graph.dependencies()
    return {
        "flow": found.graph.name,
        "steps": [
            {
                "name": task.name,
                "fate": str(found.notes[task.name].fate),
                "why": found.notes[task.name].why,
                "changes": [*found.notes[task.name].changes],
                "after": [each.name for each in dependencies[task.name]],
            }
            for task in found.graph.order()
        ],
        "findings": finding_rows(found.findings),
        **({"controlPlane": controllers_data(given)} if (given := found.control_plane) else {}),
    }
