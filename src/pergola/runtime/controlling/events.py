"""Events: reports of controllers about an object, with equal ones aggregated into a series.

Reporting never delays or fails a reconciliation. An Event that repeats an earlier one about the
same object within the hour increments the count of its series, at most every six minutes. When the
controller ends, pending Events are sent if that takes only a moment.
"""

import asyncio
import socket
import uuid
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from pergola.api.conditions import timestamp
from pergola.api.kinds import CORE_EVENT, EVENT
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    resource_version_of,
    uid_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import raise_if_must_stop
from pergola.runtime.logging import describe, get_logger

log = get_logger("events")

EventType = Literal["Normal", "Warning"]

NOTE_BYTES: Final = 1024
SERIES_INTERVAL: Final = timedelta(minutes=6)
SERIES_ENDS: Final = timedelta(hours=1)
_REMEMBERED: Final = 4096
_WAITING: Final = 1000


class Regarding(NamedTuple):
    """The object that an Event is about."""

    gvk: GroupVersionKind
    key: Key
    uid: str = ""
    resource_version: str = ""

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> "Regarding":
        """Return a reference to an object that was read."""
        return cls(GroupVersionKind.of(obj), Key.of(obj), uid_of(obj), resource_version_of(obj))


class _Sentence(NamedTuple):
    """The fields that identify equal Events."""

    gvk: GroupVersionKind
    key: Key
    uid: str
    type: EventType
    reason: str
    note: str


@dataclass(slots=True)
class _Series:
    """An Event that was written, and its count."""

    name: Key
    count: int
    last_write: datetime


class Recorder:
    """The Events of one controller; `run` sends them.

    Args:
        controller: the reporting controller, such as `networkpolicy-controller`.
        action: the activity of the controller.
        closing_seconds: the time limit for sending pending Events when the controller ends.
        creates_only: whether the controller may only create Events of the core API, as roles of
            Gardener allow it for a resource manager. Equal ones within the hour are not counted.
    """

    def __init__(
        self,
        client: Client,
        controller: str,
        *,
        clock: Clock | None = None,
        action: str = "Reconcile",
        closing_seconds: float = 2.0,
        creates_only: bool = False,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = f"{controller}-{socket.gethostname()}"[:128]
        self._clock = clock or SystemClock()
        self._action = action
        self._closing_seconds = closing_seconds
        self._creates_only = creates_only
        self._waiting: deque[tuple[_Sentence, Regarding]] = deque(maxlen=_WAITING)
        self._reported = asyncio.Event()
        self._is_ending = False
        self._series: OrderedDict[_Sentence, _Series] = OrderedDict()

    def normal(self, regarding: Regarding, reason: str, note: str) -> None:
        """Report that something works as intended."""
        self._report("Normal", regarding, reason, note)

    def warning(self, regarding: Regarding, reason: str, note: str) -> None:
        """Report a problem that needs attention."""
        self._report("Warning", regarding, reason, note)

    async def run(self) -> None:
        """Send Events until cancelled, then send the pending ones."""
        self._is_ending = False
        sending = asyncio.create_task(self._send_all())
        try:
            await asyncio.shield(sending)
        finally:
            self._is_ending = True
            self._reported.set()
            try:
                await asyncio.wait([sending], timeout=self._closing_seconds)
            finally:
                sending.cancel()

    async def _send_all(self) -> None:
        while True:
            await self._reported.wait()
            self._reported.clear()
            while self._waiting:
                sentence, regarding = self._waiting.popleft()
                try:
                    await self._send(sentence, regarding)
                except Exception as error:  # a failed Event must not end the process
                    raise_if_must_stop(error)
                    log.info("event not written", reason=sentence.reason, error=describe(error))
            if self._is_ending:
                return

    def _report(self, kind: EventType, regarding: Regarding, reason: str, note: str) -> None:
        sentence = _Sentence(regarding.gvk, regarding.key, regarding.uid, kind, reason, _cut(note))
        self._waiting.append((sentence, regarding))
        self._reported.set()

    async def _send(self, sentence: _Sentence, regarding: Regarding) -> None:
        now = self._clock.now()
        known = self._series.get(sentence)
        if known is None or now - known.last_write > SERIES_ENDS:
            await self._begin(sentence, regarding, now)
            return
        known.count += 1
        if self._creates_only or now - known.last_write < SERIES_INTERVAL:
            return
        try:
            await self._client.patch(
                EVENT,
                known.name,
                {"series": {"count": known.count, "lastObservedTime": _micro_time(now)}},
            )
        except NotFound:
            await self._begin(sentence, regarding, now)
        else:
            known.last_write = now

    async def _begin(self, sentence: _Sentence, regarding: Regarding, now: datetime) -> None:
        name = Key(sentence.key.namespace or "default", _event_name(sentence.key.name))
        await self._client.create(self._render(sentence, regarding, name, now))
        self._series[sentence] = _Series(name, 1, now)
        self._series.move_to_end(sentence)
        if len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)

    def _render(
        self, sentence: _Sentence, regarding: Regarding, name: Key, now: datetime
    ) -> JsonObject:
        reference: JsonObject = {
            "apiVersion": sentence.gvk.api_version,
            "kind": sentence.gvk.kind,
            "name": sentence.key.name,
            "namespace": sentence.key.namespace,
            "uid": sentence.uid,
            "resourceVersion": regarding.resource_version,
        }
        regarded = {name: value for name, value in reference.items() if value}
        event = {
            "metadata": {"name": name.name, "namespace": name.namespace},
            "eventTime": _micro_time(now),
            "reportingInstance": self._instance,
            "action": self._action,
            "type": sentence.type,
            "reason": sentence.reason,
        }
        if self._creates_only:
            time = timestamp(now)
            return {
                "apiVersion": CORE_EVENT.api_version,
                "kind": CORE_EVENT.kind,
                **event,
                "reportingComponent": self._controller,
                "source": {"component": self._controller},
                "message": sentence.note,
                "involvedObject": regarded,
                "count": 1,
                "firstTimestamp": time,
                "lastTimestamp": time,
            }
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            **event,
            "reportingController": self._controller,
            "note": sentence.note,
            "regarding": regarded,
        }


def _cut(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= NOTE_BYTES:
        return note
    return encoded[: NOTE_BYTES - 3].decode(errors="ignore") + "…"


def _event_name(object_name: str) -> str:
    return f"{object_name[:200].rstrip('-.')}.{uuid.uuid4().hex[:16]}"


def _micro_time(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
