"""The latest warnings about a Service, for messages about it.

Problems of creating or removing a load balancer show only there (spec 10 §4.6, §8.2).
"""

from datetime import datetime, timedelta
from typing import Final

from pergola.api.kinds import CORE_EVENT
from pergola.api.objects import JsonObject, map_at, name_of, namespace_of, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.runtime.clock import Clock

_NEWEST: Final = 5


async def service_warnings(client: Client, service: JsonObject, clock: Clock) -> str:
    """Return the text to append to a message about the Service; empty if there are no warnings."""
    fields = (
        f"involvedObject.kind=Service,involvedObject.name={name_of(service)},"
        f"involvedObject.uid={uid_of(service)},type=Warning"
    )
    try:
        events = await client.list(CORE_EVENT, namespace_of(service), fields=fields)
    except KubeError:
        return ""  # the warnings are optional; the message is reported without them
    return render_warnings(events, clock.now())


def render_warnings(events: list[JsonObject], now: datetime) -> str:
    """Return the five newest events, newest first, as lines after a blank line."""
    newest = sorted(events, key=_last_seen, reverse=True)[:_NEWEST]
    if not newest:
        return ""
    return "\n\n-> Events:\n" + "\n".join(_line(event, now) for event in newest)


def _line(event: JsonObject, now: datetime) -> str:
    component = map_at(event, "source").get("component") or event.get("reportingComponent") or "?"
    seen = _last_seen(event)
    age = _age(now - datetime.fromisoformat(seen)) if seen else "an unknown time"
    return f"* {component} reported {age} ago: {event.get('message') or event.get('reason')}"


def _last_seen(event: JsonObject) -> str:
    return str(
        event.get("lastTimestamp")
        or event.get("eventTime")
        or event.get("firstTimestamp")
        or map_at(event, "metadata").get("creationTimestamp")
        or ""
    )


def _age(span: timedelta) -> str:
    """Format an age coarsely: a message that changes every second would be written every second."""
    seconds = max(0, int(span.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return "less than a minute"
