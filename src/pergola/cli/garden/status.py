"""`pergola garden status`: the tasks of a Garden while they run, and its health."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.garden.runtime_cluster import Source, chosen, runtime_template
from pergola.cli.output import ReportOutput
from pergola.cli.text import plain_console

if TYPE_CHECKING:
    from pergola.operator.reconcile.picture import Picture

Flag = Annotated[bool, Parameter(negative="")]


def status(
    garden: str = "",
    /,
    *,
    once: Flag = False,
    every: Annotated[bool, Parameter(name="--all", alias="-A", negative="")] = False,
    config: Path | None = None,
    output: ReportOutput = "text",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Show what a Garden is doing, what it waits for, and how healthy it is.

    While it comes up, is reconciled or deleted: the tasks as a live tree, with each object that a
    running task waits for, its problem, and for how long. Then the last operation, its errors, and
    the conditions. Ends when the operation has ended; exits with 1 if it failed. Programs get one
    JSON object a line, or YAML document, for each change.

    Parameters
    ----------
    garden
        Name of the Garden; by default the only one.
    once
        Print the present state and end.
    every
        Show every task, also those that are done, skipped (with the reason) or have not started.
    config
        Configuration file of the operator, whose feature gates decide which tasks run; by
        default that of the operator in the cluster.
    """
    source = Source(garden, config, cluster)
    last = asyncio.run(_status(source, once=once, every=every, output=output))
    if last.has_failed:
        sys.exit(1)


async def _status(source: Source, *, once: bool, every: bool, output: str) -> "Picture":
    from pergola.cli.garden.status_data import print_data
    from pergola.cli.garden.status_live import show
    from pergola.cli.garden.status_tree import health
    from pergola.operator.reconcile.picture import following
    from pergola.runtime.logging import configure

    configure("error", "text")
    out = plain_console()
    async with source.cluster.connect() as client:
        name = await chosen(client, source.garden)
        template = await runtime_template(client, source.config)
        async with following(client, name, template) as pictures:
            seen = until_over(pictures, once=once)
            if output != "text":
                return await print_data(seen, output)
            last = await show(seen, out, every=every)
    out.print()
    out.print(health(last))
    return last


async def until_over(pictures: "AsyncIterator[Picture]", *, once: bool) -> "AsyncIterator[Picture]":
    """Yield pictures until the operation has ended; only the first one if `once`."""
    async for picture in pictures:
        yield picture
        if once or picture.is_over:
            return
