"""`pergola garden certificates`: when each certificate of a Garden expires and is renewed."""

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.output import ListOutput, object_name, print_table, show
from pergola.cli.text import in_days, say

if TYPE_CHECKING:
    from datetime import datetime

    from pergola.api.objects import JsonObject
    from pergola.operator.care.extras import Lifetime

_HEADS: Final = ("SECRET", "FOR", "EXPIRES", "IN", "RENEWED", "")
_WIDE: Final = ("ISSUED",)
_CLIENT: Final = "client"


def certificates(
    *, output: ListOutput = "table", cluster: ClusterOptions = DEFAULT_CLUSTER
) -> None:
    """Print when each certificate in the Secrets of a Garden expires, and is renewed.

    The certificates of the virtual cluster are Secrets of the runtime cluster, too. Sorted by
    expiry. The operator renews its own certificates long before; `late` marks those that should
    have been renewed already. Reads wildcard certificates, and only the labels of the Secrets that
    the operator generates. Exits with 1 if one is expired or late.
    """
    found, now = asyncio.run(_observe(cluster))
    show(
        output,
        data=[_data(each, now) for each in found],
        names=[object_name("Secret", "", each.key.name) for each in found],
        text=lambda: _print(found, now, is_wide=output == "wide"),
    )
    if any(each.is_late(now) for each in found):
        sys.exit(1)


async def _observe(cluster: ClusterOptions) -> "tuple[list[Lifetime], datetime]":
    from pergola.operator.care.extras import lifetimes_of, read_credentials
    from pergola.runtime.clock import SystemClock

    async with cluster.connect() as client:
        lifetimes = lifetimes_of(*await read_credentials(client))
    return sorted(lifetimes, key=lambda each: (each.until, each.key)), SystemClock().now()


def _print(lifetimes: "list[Lifetime]", now: "datetime", *, is_wide: bool) -> None:
    from pergola.api.conditions import timestamp

    if not lifetimes:
        say("namespace garden has no certificate of a Garden")
        return
    rows = []
    for each in lifetimes:
        cells = (
            str(each.key),
            _purpose(each),
            timestamp(each.until),
            in_days(each.until - now) if each.until >= now else f"{in_days(now - each.until)} ago",
            _renewed(each, now),
            "expired" if each.until < now else "late" if each.is_late(now) else "",
        )
        rows.append((*cells, timestamp(each.issued)) if is_wide else cells)
    print_table((*_HEADS, *_WIDE) if is_wide else _HEADS, rows)


def _purpose(lifetime: "Lifetime") -> str:
    """Return what a certificate is for, as far as its name tells."""
    from pergola.garden.components.authorities import PURPOSES

    if not lifetime.is_own:
        return "all hosts of the Garden"
    if lifetime.name in PURPOSES:
        return PURPOSES[lifetime.name]
    return f"{_CLIENT if _CLIENT in lifetime.name.split('-') else 'server'} {lifetime.name}"


def _renewed(lifetime: "Lifetime", now: "datetime") -> str:
    if lifetime.renewal is None:
        return "by you"
    if lifetime.renewal <= now:
        return "by the operator, now"
    return f"by the operator, in {in_days(lifetime.renewal - now)}"


def _data(lifetime: "Lifetime", now: "datetime") -> "JsonObject":
    return {
        "namespace": lifetime.key.namespace,
        "name": lifetime.key.name,
        "purpose": _purpose(lifetime),
        "issued": lifetime.issued.isoformat(),
        "expires": lifetime.until.isoformat(),
        "daysLeft": (lifetime.until - now).days,
        "renewal": lifetime.renewal.isoformat() if lifetime.renewal else None,
        "renewedByOperator": lifetime.is_own,
        "expired": lifetime.until < now,
        "late": lifetime.is_late(now),
    }
