"""Reads for explanations: objects that may not be read, or are not served, count as absent."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from pergola.api.kinds import POD
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    map_at,
    name_of,
    namespace_of,
    owner_references_of,
    uid_of,
)
from pergola.garden.components.component import Identity
from pergola.health import Trouble
from pergola.health.times import read_time
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Forbidden, UnknownKind
from pergola.kube.selectors import format_selector

EVENT: Final = GroupVersionKind("", "v1", "Event")

_LINES: Final = 5
_LONGEST: Final = 300


class Reader:
    """Reads objects, their last Events, and the last lines of container logs."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def find(self, identity: Identity, *, metadata_only: bool = False) -> JsonObject | None:
        """Return an object, or None if it does not exist."""
        with suppress(UnknownKind):
            return await self._client.find(*identity, metadata_only=metadata_only)
        return None

    async def is_missing(self, identity: Identity) -> bool:
        """Return whether an object is certain not to exist, without reading its content."""
        with suppress(Forbidden):
            return await self.find(identity, metadata_only=True) is None
        return False

    async def listed(
        self, gvk: GroupVersionKind, namespace: str, selector: JsonObject | None = None
    ) -> list[JsonObject]:
        """Return the objects of a kind in a namespace that a label selector matches."""
        labels = format_selector(selector) if selector else None
        with suppress(UnknownKind, Forbidden):
            return await self._client.list(gvk, namespace, labels=labels or None)
        return []

    async def owned(self, gvk: GroupVersionKind, owner: JsonObject) -> list[JsonObject]:
        """Return the objects of a kind that a workload controls, by its selector."""
        selector = map_at(owner, "spec", "selector")
        found = await self.listed(gvk, namespace_of(owner), selector)
        return [obj for obj in found if _controller(obj) == uid_of(owner)]

    async def event(self, obj: JsonObject) -> str:
        """Return the last Event about an object, warnings first; empty if there is none."""
        namespace = namespace_of(obj) or "default"
        with suppress(ApiError):
            events = await self._client.list(
                EVENT, namespace, fields=f"involvedObject.uid={uid_of(obj)}"
            )
            return last_event(events)
        return ""

    async def log(self, pod: JsonObject, trouble: Trouble) -> str:
        """Return the last line that a container wrote; empty if there is none, or no access."""
        if not trouble.has_log:
            return ""
        query = urlencode(
            {
                "container": trouble.container,
                "tailLines": _LINES,
                "previous": str(trouble.has_previous).lower(),
            }
        )
        key = Key.of(pod)
        resource = await self._client.resource(POD)
        with suppress(ApiError):
            return last_line(await self._client.get_raw(f"{resource.item(key)}/log?{query}"))
        return ""


def last_event(events: Sequence[JsonObject]) -> str:
    """Return the newest Event as text, warnings before others; empty if there is none."""
    newest = max(events, key=_rank, default=None)
    if newest is None:
        return ""
    message = " ".join(str(newest.get("message") or "").split())
    return _cut(f"{newest.get('reason')}: {message}")


def last_line(content: bytes) -> str:
    """Return the last non-empty line of a log, without control characters."""
    lines = content.decode(errors="replace").splitlines()
    line = next((line for line in reversed(lines) if line.strip()), "")
    return _cut("".join(char if char.isprintable() else " " for char in line).strip())


def _rank(event: JsonObject) -> tuple[bool, float, str]:
    times = (
        event.get("lastTimestamp"),
        map_at(event, "series").get("lastObservedTime"),
        event.get("eventTime"),
        event.get("firstTimestamp"),
    )
    known = [time for time in map(read_time, times) if isinstance(time, datetime)]
    newest = max((time.timestamp() for time in known), default=0.0)
    return event.get("type") == "Warning", newest, name_of(event)


def _controller(obj: JsonObject) -> str:
    owners = owner_references_of(obj)
    return next((str(o.get("uid")) for o in owners if o.get("controller") is True), "")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
