"""Writes to the status during one run of an actuator, in order, one at a time."""

import asyncio
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, uid_of
from pergola.extension_api.errors import Code
from pergola.extensions.actuator import Status
from pergola.extensions.lifecycle.operation import Operation
from pergola.extensions.lifecycle.status import (
    changes,
    failed,
    processing,
    progressing,
    succeeded,
)
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.runtime.clock import Clock, monotonic
from pergola.runtime.logging import get_logger

log = get_logger("extension")

PROGRESS_SECONDS: Final = 1.0
_LAST_PERCENT: Final = 99


class Report:
    """The status of one object during one run.

    Args:
        obj: the object being processed: its generation and its request are reported.

    Attributes:
        is_over: whether the outcome is decided, and at most remains to be written.
    """

    def __init__(self, client: Client, obj: JsonObject, operation: Operation, clock: Clock) -> None:
        self._client = client
        self._gvk = GroupVersionKind.of(obj)
        self._key = Key.of(obj)
        self._operation = operation
        self._clock = clock
        self._worked_on = obj
        self._written = obj
        self._writing = asyncio.Lock()
        self.is_over = False
        self._percent = 1
        self._told: tuple[int, str] | None = None
        self._told_at = float("-inf")

    @property
    def written(self) -> JsonObject:
        """The object as returned by the last write."""
        return self._written

    async def begin(self) -> None:
        """Record that the work begins."""
        now = self._clock.now()
        await self._write(processing(self._worked_on, self._operation, self._gvk.kind, now))

    async def progress(self, percent: int, description: str) -> None:
        """Record progress: never backwards, at most once a second, never after the end.

        Skipped or refused writes are not repeated.
        """
        if self.is_over or monotonic() - self._told_at < PROGRESS_SECONDS:
            return
        self._percent = max(self._percent, min(percent, _LAST_PERCENT))
        if self._told == (self._percent, description):
            return
        self._told, self._told_at = (self._percent, description), monotonic()
        patch = progressing(self._percent, description, self._clock.now())
        try:
            async with self._writing:
                if not self.is_over:
                    await self._write(patch)
        except KubeError as error:
            log.debug("progress not written", object=str(self._key), error=str(error))

    async def save(self, fields: Status) -> None:
        """Write fields of the status at once, if they changed.

        Raises:
            ExtensionError: a field does not belong to the actuator.
            KubeError: nothing was saved.
        """
        async with self._writing:
            patch = changes(self._written, fields)
            if patch and not self.is_over:
                await self._write(patch)

    async def fail(self, text: str, codes: tuple[Code, ...]) -> None:
        """Record that the work failed; ignore a failure of this write."""
        now, kind = self._clock.now(), self._gvk.kind
        patch = failed(self._worked_on, self._operation, kind, text, codes, now)
        self.is_over = True
        try:
            async with self._writing:
                await self._write(patch)
        except KubeError as error:
            log.error("error not written to the status", object=str(self._key), error=str(error))

    async def succeed(self, fields: Status | None) -> None:
        """Record that the work is done, with the actuator's fields, in one patch.

        Raises:
            ExtensionError: a field does not belong to the actuator.
            KubeError: the status cannot be written.
        """
        self.is_over = True
        async with self._writing:
            # The current status, and everything else as it was reconciled.
            known = {**self._worked_on, "status": map_at(self._written, "status")}
            now, kind = self._clock.now(), self._gvk.kind
            await self._write(succeeded(known, self._operation, kind, fields, now))

    async def _write(self, status: JsonObject) -> None:
        # Include the uid, so that another object with the same name is not written.
        body = {"metadata": {"uid": uid_of(self._worked_on)}, "status": status}
        self._written = await self._client.patch(self._gvk, self._key, body, subresource="status")
