"""Reads for explanations, with the caller's permissions: denied reads are recorded and skipped."""

from collections.abc import Sequence
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from pergola.api.kinds import CORE_EVENT, POD, SECRET
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
from pergola.health import Trouble
from pergola.health.times import read_time
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Forbidden, InvalidKey, UnknownKind
from pergola.kube.selectors import format_selector

_LINES: Final = 5
_LONGEST: Final = 300


class Reader:
    """Reads objects and Events; each object at most once.

    Attributes:
        client: For explanations that read more than individual objects.
        source: Reads the cluster that contains the ManagedResources of objects in this one.
        target: Reads the cluster that contains the objects of ManagedResources in this one.
        unread: One sentence for each kind and place that the caller may not read.
    """

    def __init__(
        self, client: Client, *, source: Client | None = None, target: Client | None = None
    ) -> None:
        self.client = client
        self.source = Reader(source) if source else self
        self.target = Reader(target) if target else self
        self._unread: dict[str, None] = {}
        self._found: dict[tuple[GroupVersionKind, Key, bool], JsonObject | None] = {}

    @property
    def unread(self) -> tuple[str, ...]:
        """The reads that were denied, in the order in which they were needed."""
        found = dict(self._unread)
        for other in {self.source, self.target} - {self}:
            found |= dict.fromkeys(other.unread)
        return tuple(found)

    def note(self, sentence: str) -> None:
        """Record that something could not be read."""
        self._unread[sentence] = None

    async def find(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject | None:
        """Return an object; None if it does not exist, is not served, or may not be read."""
        desired = (gvk, key, metadata_only)
        if desired not in self._found:
            self._found[desired] = await self._read(*desired)
        return self._found[desired]

    async def is_missing(self, gvk: GroupVersionKind, key: Key) -> bool:
        """Return whether an object is certain not to exist, without reading its content."""
        is_read = (gvk, key, False) in self._found
        found = await self.find(gvk, key, metadata_only=not is_read)
        return found is None and _sentence(gvk, key.namespace) not in self._unread

    async def listed(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
    ) -> list[JsonObject]:
        """Return the objects of a kind; empty if it is not served, or may not be read."""
        try:
            return await self.client.list(
                gvk, namespace, labels=labels, fields=fields, metadata_only=gvk == SECRET
            )
        except Forbidden:
            self.note(_sentence(gvk, namespace or ""))
        except UnknownKind:
            pass
        return []

    async def owned(self, gvk: GroupVersionKind, owner: JsonObject) -> list[JsonObject]:
        """Return the objects of a kind that a workload controls, by its selector."""
        labels = format_selector(map_at(owner, "spec", "selector")) or None
        found = await self.listed(gvk, namespace_of(owner), labels=labels)
        return [obj for obj in found if _controller(obj) == uid_of(owner)]

    async def may_list(self, gvk: GroupVersionKind) -> bool:
        """Return whether the caller may list a kind in all namespaces."""
        pages = self.client.pages(gvk, metadata_only=True, page_size=1)
        try:
            async with aclosing(pages):
                await anext(pages, None)
        except Forbidden:
            self.note(_sentence(gvk, ""))
            return False
        return True

    async def event(self, obj: JsonObject) -> str:
        """Return the last Event about an object, warnings first; empty if there is none."""
        namespace = namespace_of(obj) or "default"
        try:
            return last_event(
                await self.client.list(
                    CORE_EVENT, namespace, fields=f"involvedObject.uid={uid_of(obj)}"
                )
            )
        except Forbidden:
            self.note(_sentence(CORE_EVENT, namespace))
        except ApiError:
            pass
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
        resource = await self.client.resource(POD)
        with suppress(ApiError):
            return last_line(await self.client.get_raw(f"{resource.item(key)}/log?{query}"))
        return ""

    async def _read(
        self, gvk: GroupVersionKind, key: Key, metadata_only: bool
    ) -> JsonObject | None:
        try:
            return await self.client.find(gvk, key, metadata_only=metadata_only)
        except Forbidden:
            self.note(_sentence(gvk, key.namespace))
        except (InvalidKey, UnknownKind):
            pass
        return None


def _sentence(gvk: GroupVersionKind, namespace: str) -> str:
    where = f" in namespace {namespace}" if namespace else ""
    return f"you may not read {gvk.group_kind} objects{where}"


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
