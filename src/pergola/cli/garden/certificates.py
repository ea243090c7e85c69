"""`pergola garden certificates`: when each certificate of a Garden expires and is renewed."""

import asyncio
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.output import ListOutput, object_name, print_table, show
from pergola.cli.text import in_days, say

if TYPE_CHECKING:
    from datetime import datetime

    from pergola.api.objects import JsonObject
    from pergola.kube.client import Client
    from pergola.operator.care.extras import Lifetime

_HEADS: Final = ("CLUSTER", "CERTIFICATE", "FOR", "EXPIRES", "IN", "RENEWED", "")
_WIDE: Final = ("ISSUED",)
_CLIENT: Final = "client"
_SEED: Final = "Seed"


class Listed(NamedTuple):
    """A certificate in the list.

    Attributes:
        cluster: `runtime` or `virtual`.
        kind: The kind of the object that has it or describes it.
    """

    cluster: str
    kind: str
    lifetime: "Lifetime"


def certificates(
    *, output: ListOutput = "table", cluster: ClusterOptions = DEFAULT_CLUSTER
) -> None:
    """Print when each certificate of a Garden expires, and is renewed.

    Those of the virtual cluster's servers are Secrets of the runtime cluster. In the virtual
    cluster, lists the client certificates of gardenlets and the TLS Secrets of namespace garden; if
    it cannot be read, says why on standard error. Sorted by expiry. `late` marks those that should
    have been renewed already. Of the Secrets that the operator generates, reads only labels. Exits
    with 1 if a certificate is expired or late.
    """
    found, now = asyncio.run(_observe(cluster))
    show(
        output,
        data=[_data(each, now) for each in found],
        names=[_object_name(each) for each in found],
        text=lambda: _print(found, now, is_wide=output == "wide"),
    )
    if any(each.lifetime.is_late(now) for each in found):
        sys.exit(1)


async def _observe(cluster: ClusterOptions) -> "tuple[list[Listed], datetime]":
    from pergola.operator.care.extras import lifetimes_of, read_credentials
    from pergola.runtime.clock import SystemClock

    async with cluster.connect() as client:
        lifetimes = lifetimes_of(*await read_credentials(client))
        found = [Listed("runtime", "Secret", each) for each in lifetimes]
        found += await _observe_virtual(client)
    found.sort(key=lambda each: (each.lifetime.until, each.lifetime.key))
    return found, SystemClock().now()


async def _observe_virtual(runtime: "Client") -> list[Listed]:
    from pergola.cli.garden.virtual_certificates import observe_virtual
    from pergola.kube.errors import KubeError
    from pergola.operator.virtual_cluster import NotConnected

    try:
        gardenlets, provided = await observe_virtual(runtime)
    except (KubeError, NotConnected) as error:
        say(f"the virtual cluster was not read: {error}", file=sys.stderr)
        return []
    return [
        *(Listed("virtual", _SEED, each) for each in gardenlets),
        *(Listed("virtual", "Secret", each) for each in provided),
    ]


def _print(certificates: list[Listed], now: "datetime", *, is_wide: bool) -> None:
    from pergola.api.conditions import timestamp

    if not certificates:
        say("the Garden has no certificates")
        return
    rows = []
    for listed in certificates:
        each = listed.lifetime
        cells = (
            listed.cluster,
            f"{listed.kind} {each.key}",
            _purpose(listed),
            timestamp(each.until),
            in_days(each.until - now) if each.until >= now else f"{in_days(now - each.until)} ago",
            _renewed(listed, now),
            "expired" if each.until < now else "late" if each.is_late(now) else "",
        )
        issued = timestamp(each.issued) if each.issued else ""
        rows.append((*cells, issued) if is_wide else cells)
    print_table((*_HEADS, *_WIDE) if is_wide else _HEADS, rows)


def _object_name(listed: Listed) -> str:
    group = "core.gardener.cloud" if listed.kind == _SEED else ""
    return object_name(listed.kind, group, listed.lifetime.key.name)


def _purpose(listed: Listed) -> str:
    """Return what a certificate is for, as far as its name tells."""
    from pergola.garden.components.authorities import PURPOSES

    lifetime = listed.lifetime
    if listed.kind == _SEED:
        return "client gardenlet"
    if listed.cluster == "virtual":
        return "a TLS Secret of users"
    if not lifetime.is_own:
        return "all hosts of the Garden"
    if lifetime.name in PURPOSES:
        return PURPOSES[lifetime.name]
    return f"{_CLIENT if _CLIENT in lifetime.name.split('-') else 'server'} {lifetime.name}"


def _renewed(listed: Listed, now: "datetime") -> str:
    lifetime = listed.lifetime
    if listed.kind == _SEED:
        return "by gardenlet"
    if lifetime.renewal is None:
        return "by you"
    if lifetime.renewal <= now:
        return "by the operator, now"
    return f"by the operator, in {in_days(lifetime.renewal - now)}"


def _data(listed: Listed, now: "datetime") -> "JsonObject":
    lifetime = listed.lifetime
    return {
        "cluster": listed.cluster,
        "kind": listed.kind,
        "namespace": lifetime.key.namespace,
        "name": lifetime.key.name,
        "purpose": _purpose(listed),
        "issued": lifetime.issued.isoformat() if lifetime.issued else None,
        "expires": lifetime.until.isoformat(),
        "daysLeft": (lifetime.until - now).days,
        "renewal": lifetime.renewal.isoformat() if lifetime.renewal else None,
        "renewedByOperator": lifetime.is_own,
        "expired": lifetime.until < now,
        "late": lifetime.is_late(now),
    }
