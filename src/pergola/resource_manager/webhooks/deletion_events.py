"""Events about confirmed deletions (spec 12 Beyond 15).

API servers do not authenticate themselves, so a review may be forged: an Event is recorded only
about an object that exists and is confirmed, and only a limited number per minute.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from pergola.admission.review import Request
from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    name_of,
    uid_of,
)
from pergola.kube.errors import KubeError
from pergola.runtime.clock import monotonic
from pergola.runtime.controlling.events import Recorder, Regarding

REASON: Final = "ConfirmedDeletion"
BURST: Final = 50
PER_SECOND: Final = 1.0
_READ_SECONDS: Final = 1.0

Read = Callable[[GroupVersionKind, Key], Awaitable[JsonObject]]
"""Reads an object from the API server; raises KubeError."""


class DeletionEvents:
    """Records an Event for each deletion that is allowed.

    Args:
        now: seconds on a monotonic clock.
    """

    def __init__(
        self, recorder: Recorder, read: Read, *, now: Callable[[], float] = monotonic
    ) -> None:
        self._recorder = recorder
        self._read = read
        self._now = now
        self._allowance = float(BURST)
        self._last: float | None = None

    async def record(self, request: Request, obj: JsonObject) -> None:
        """Record that the deletion of an object is allowed, unless it is a dry run."""
        if request.dry_run or not self._may_record():
            return
        key = Key(request.namespace, request.name or name_of(obj))
        try:
            async with asyncio.timeout(_READ_SECONDS):
                live = await self._read(request.kind, key)
        except (KubeError, TimeoutError):
            return
        annotations = annotations_of(live)
        if uid_of(live) != uid_of(obj) or not marks.is_truthy(
            annotations.get(marks.CONFIRMATION_DELETION)
        ):
            return
        when = annotations.get(marks.TIMESTAMP) or "an unknown time"
        self._recorder.normal(
            Regarding.of(live),
            REASON,
            f"deletion by {request.user or 'an unknown user'} is allowed: confirmed at {when}",
        )

    def _may_record(self) -> bool:
        now = self._now()
        if self._last is not None:
            self._allowance = min(BURST, self._allowance + (now - self._last) * PER_SECOND)
        self._last = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True
