"""`pergola garden plan`: what a reconciliation would do, without doing it."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.garden.check import observed_objects
from pergola.cli.garden.compare import DIFFERENT
from pergola.cli.garden.runtime_cluster import (
    Source,
    chosen,
    runtime_settings,
    template_in,
)
from pergola.cli.manifest_files import ManifestFileError, named, of_kind, read_objects
from pergola.cli.output import ReportOutput, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.garden.plan_picture import Picture
    from pergola.kube.client import Client
    from pergola.operator.plan import Plan

Flag = Annotated[bool, Parameter(negative="")]

_PICTURES: Final[tuple["Picture", ...]] = ("tree", "dot", "mermaid")


class PlanError(Exception):
    """Nothing can be planned; the text says why and what to do."""


def plan(
    garden: str = "",
    /,
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = "",
    everything: Annotated[bool, Parameter(name="--all", negative="")] = False,
    picture: Flag = False,
    dot: Flag = False,
    mermaid: Flag = False,
    config: Path | None = None,
    output: ReportOutput = "text",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Show what a reconciliation of a Garden would do, task by task; only reads.

    Runs the tasks of both flows with a client that sends no writes. Prints which tasks run, are
    skipped or remove something, and which fields of which objects would change; values of Secrets
    are never printed. Exits with 2 if anything would change or cannot be foreseen.

    Parameters
    ----------
    garden
        The name of the Garden; by default the only one of the cluster.
    file
        A manifest with the Garden as it is to be, or - for the standard input. It gets its defaults
        and is checked as by admission; findings are printed, and the exit code is 1.
    everything
        Print all tasks, also those that change nothing, and what each comes after.
    picture
        Draw the graphs of both flows as trees, with what each task would do.
    dot
        Print the graphs for Graphviz.
    mermaid
        Print the graphs for Mermaid.
    config
        Configuration file of the operator, whose feature gates and settings change what is
        rendered; by default that of the operator in the cluster, with its image vector.
    """
    forms = [name for name, given in zip(_PICTURES, (picture, dot, mermaid), strict=True) if given]
    if len(forms) + (output != "text") > 1:
        raise PlanError("give only one of --picture, --dot, --mermaid and --output")
    planned = asyncio.run(_planned(Source(garden, config, cluster), file))
    if planned is None:
        sys.exit(1)
    found, configuration = planned
    if forms:
        say(f"configuration of the operator: {configuration}", file=sys.stderr)
    _print(found, configuration, forms, output, everything=everything)
    if not found.is_empty:
        sys.exit(DIFFERENT)


def _print(
    found: "Plan",
    configuration: str,
    forms: "Sequence[Picture]",
    output: str,
    *,
    everything: bool,
) -> None:
    if forms:
        from pergola.cli.garden.plan_picture import pictures

        say(pictures(found, forms[0]), end="")
        return
    show(
        output,
        data={**found.to_json(), "configuration": configuration},
        text=lambda: _print_text(found, configuration, everything=everything),
    )


def _print_text(found: "Plan", configuration: str, *, everything: bool) -> None:
    from rich.text import Text

    from pergola.cli.garden.plan_text import lines
    from pergola.cli.safe_console import SafeConsole

    console = SafeConsole(soft_wrap=True)
    console.print(Text(f"configuration of the operator: {configuration}", style="dim"))
    for line in lines(found, everything=everything):
        console.print(Text(line.text, style=line.style))


async def _planned(source: Source, file: str) -> "tuple[Plan, str] | None":
    """Return the plan, and the source of the operator's configuration used for it.

    None if admission would refuse the Garden, whose findings are printed.
    """
    from pergola.operator.plan import rehearse
    from pergola.runtime.logging import configure

    configure("error", "text")
    async with source.cluster.connect() as client:
        name = source.garden
        garden = await (_given(client, file, name) if file else _live(client, name))
        if garden is None:
            return None
        settings = await runtime_settings(client, source.config)
        template = await template_in(client, settings)
        return await rehearse(client, garden, template), settings.source


async def _live(client: "Client", name: str) -> "JsonObject":
    """Return the Garden with a name, or the only one.

    Raises:
        GardenNotFound: There is not exactly one.
        PlanError: It is being deleted.
    """
    from pergola.api.objects import Key, deletion_timestamp_of
    from pergola.api.operator_v1alpha1 import GARDEN

    key = Key("", await chosen(client, name))
    garden = await client.get(GARDEN, key)
    if deletion_timestamp_of(garden) is not None:
        raise PlanError(f"Garden {key} is being deleted, so it is not reconciled")
    return garden


async def _given(client: "Client", file: str, name: str) -> "JsonObject | None":
    """Return a manifest's Garden as it would be stored; None if admission would refuse it."""
    from datetime import UTC, datetime

    from pergola.api.objects import name_of
    from pergola.api.operator_v1alpha1 import GARDEN
    from pergola.operator.plan.given import stored
    from pergola.operator.webhooks.offline import Stored, check_manifests

    objects = read_objects(file)
    gardens = of_kind(objects, GARDEN.group, GARDEN.kind)
    found = [each for each in gardens if name in ("", name_of(each))]
    if len(found) != 1:
        names = ", ".join(map(named, objects)) or "nothing"
        raise ManifestFileError(f"{file} must contain one Garden to plan, but contains {names}")
    now = datetime.now(UTC)
    live = await observed_objects(client, objects)
    checked = [*check_manifests(objects, Stored(live, is_complete=True), now)]
    verdict = next(each for each in checked if named(each.obj) == named(found[0]))
    for cause in verdict.causes:
        say(f"{named(verdict.obj)}: {cause}", file=sys.stderr)
    for warning in verdict.warnings:
        say(f"warning: {named(verdict.obj)}: {warning}", file=sys.stderr)
    if verdict.causes:
        return None
    same = (each for each in live if named(each) == named(verdict.obj))
    return stored(verdict.obj, next(same, None), now)
