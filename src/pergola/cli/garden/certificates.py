"""`pergola garden certificates`: when each certificate of a Garden expires."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.text import in_days, plain_console, say

if TYPE_CHECKING:
    from datetime import datetime

    from pergola.api.objects import JsonObject
    from pergola.operator.care.extras import Lifetime


def certificates(
    *,
    output: Annotated[Literal["table", "json"], Parameter(alias="-o")] = "table",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Print when each certificate in the Secrets of a Garden expires, and who renews it.

    Sorted by expiry. The operator renews its own certificates long before; `late` marks those that
    should have been renewed already. Reads wildcard certificates, and only the labels of the
    Secrets that the operator generates.

    Parameters
    ----------
    output
        `table` for people, `json` for programs.
    """
    found, now = asyncio.run(_observe(cluster))
    if output == "json":
        import orjson

        rows = [_json(each, now) for each in found]
        say(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
    elif found:
        print_table(found, now)
    else:
        say("namespace garden has no certificate of a Garden")


async def _observe(cluster: ClusterOptions) -> "tuple[list[Lifetime], datetime]":
    from pergola.operator.care.extras import lifetimes_of, read_credentials
    from pergola.runtime.clock import SystemClock

    async with cluster.connect() as client:
        lifetimes = lifetimes_of(*await read_credentials(client))
    return sorted(lifetimes, key=lambda each: (each.until, each.key)), SystemClock().now()


def print_table(lifetimes: "list[Lifetime]", now: "datetime") -> None:
    """Print a line for each certificate."""
    from rich.table import Table
    from rich.text import Text

    from pergola.api.conditions import timestamp

    table = Table(box=None, header_style="", pad_edge=False)
    for column in ("SECRET", "EXPIRES", "IN", "RENEWED BY", ""):
        table.add_column(column, overflow="fold")
    for each in lifetimes:
        cells = (
            str(each.key),
            timestamp(each.until),
            in_days(each.until - now) if each.until >= now else f"{in_days(now - each.until)} ago",
            "the operator" if each.is_own else "you",
            "late" if each.is_late(now) else "",
        )
        table.add_row(*(Text(cell) for cell in cells))
    plain_console().print(table)


def _json(lifetime: "Lifetime", now: "datetime") -> "JsonObject":
    return {
        "namespace": lifetime.key.namespace,
        "name": lifetime.key.name,
        "issued": lifetime.issued.isoformat(),
        "expires": lifetime.until.isoformat(),
        "renewedByOperator": lifetime.is_own,
        "late": lifetime.is_late(now),
    }
