"""Whether an operator is running, according to the Lease of its leader election."""

from datetime import datetime, timedelta
from typing import Final

from pergola.api.leases import holder_of
from pergola.api.objects import JsonObject, Key, map_at
from pergola.garden.landscape import NAMESPACE
from pergola.health.times import read_time

ELECTION: Final = Key(NAMESPACE, "gardener-operator-leader-election")
"""The Lease, unless the operator's configuration names another one."""

_PATIENCE: Final = timedelta(minutes=1)
"""Clocks differ, and the leader may be changing."""


def operator_problem(lease: JsonObject | None, now: datetime) -> str:
    """Return why no operator is running; empty if one is, or if there is no leader election."""
    if lease is None:
        return ""
    holder, renewed = holder_of(lease), read_time(map_at(lease, "spec").get("renewTime"))
    if not holder:
        return f"no operator holds Lease {ELECTION}: check that one runs"
    if renewed is None or now - renewed < _PATIENCE:
        return ""
    since = f"{renewed:%Y-%m-%d %H:%M:%S} UTC"
    return f"operator {holder} has not renewed Lease {ELECTION} since {since}: check that it runs"
