"""The Lease that an extension renews to report that it is alive (spec 40 §2.5)."""

from datetime import UTC, datetime
from typing import Final

from pergola.api.leases import holder_of
from pergola.api.objects import JsonObject, Key, map_at
from pergola.health.times import read_time

NAME: Final = "gardener-extension-heartbeat"
LABEL: Final = "extensions.pergola.dev/heartbeat"
"""On the Leases of a process's second and later extensions; the value is the extension's name."""
STALE_SECONDS: Final = 300.0


def is_alive(lease: JsonObject | None, now: datetime, stale: float = STALE_SECONDS) -> str | None:
    """Return why an extension does not count as running, judging by its heartbeat; None if it does.

    Args:
        lease: in the namespace of its ControllerInstallation; None if there is none.
        stale: the seconds since the last renewal after which it counts as dead.
    """
    if lease is None:
        return f"the extension has never run there: no Lease {NAME}"
    extension = f"extension {holder_of(lease) or 'of an unknown name'}"
    renewed = read_time(map_at(lease, "spec").get("renewTime"))
    if renewed is None:
        return f"{extension} wrote no time when it last ran: Lease {Key.of(lease)} has no renewTime"
    if (now - renewed).total_seconds() > stale:
        return f"{extension} is not running since {renewed.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return None
