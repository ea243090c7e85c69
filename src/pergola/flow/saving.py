"""Writes of a flow's state: creations at once, the rest batched (spec 30 §13)."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from pergola.flow.background import beside
from pergola.flow.errors import FlowError, StateNotSaved
from pergola.flow.retry import Retry
from pergola.flow.state import State
from pergola.runtime.failures import sentence_of
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import is_being_cancelled

log = get_logger("flow")

Write = Callable[[dict[str, str]], Awaitable[object]]
"""Stores the whole state before it returns."""

PATIENCE: Final = Retry(attempts=8, first_seconds=0.2, longest_seconds=10.0)
"""About 15 to 25 seconds until tasks that wait for a write are notified of its failure."""
_WRITE_SECONDS: Final = 15.0


class Saver:
    """Writes a state whenever it has changed; unchanged state is not written again.

    Creations are written at once: one write covers everything that changed before it started. Other
    changes wait for `interval`, so that they cost at most one write per second. A failed write does
    not fail a task: it is logged and retried, at the latest when the flow ends.

    Args:
        write: stores the state.
        interval: the interval in seconds.
        retry: the attempts after which waiting tasks are notified of the failure; writing
            continues.
        closing_seconds: the time limit of the last write, including its retries.
    """

    def __init__(
        self,
        state: State,
        write: Write,
        *,
        interval: float = 1.0,
        retry: Retry = PATIENCE,
        closing_seconds: float = 10.0,
        source: random.Random | None = None,
    ) -> None:
        self.state = state
        self._write = write
        self._interval = interval
        self._retry = retry
        self._closing_seconds = closing_seconds
        self._source = source or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._saved = state.version
        self._desired = 0
        self._changed_at: float | None = None
        self._retry_at: float | None = None
        self._failures = 0
        self._error: Exception | None = None
        self._closing = False
        self._wake = asyncio.Event()
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        state.listen(self._wake.set)

    @property
    def unsaved(self) -> StateNotSaved | None:
        """The error if there are unsaved changes; None if there are none."""
        return None if self._is_clean else StateNotSaved(self._error)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Write while the block runs, and the rest when it ends, for whatever reason."""
        self._closing = False
        async with beside(self._run(), stop=self._close, limit=self._closing_seconds):
            yield

    async def durable(self, task: str) -> None:
        """Wait until everything that a task created is stored.

        Raises:
            StateNotSaved: several attempts failed.
        """
        await self._until(self.state.created_by(task))

    async def flush(self) -> None:
        """Write all changes at once, and wait for completion.

        For tasks that must not continue before that, such as one that chooses a name and then uses
        it.

        Raises:
            StateNotSaved: several attempts failed.
        """
        self._desired = self.state.version
        self._wake.set()
        await self._until(self._desired)

    @property
    def _is_clean(self) -> bool:
        return self._saved >= self.state.version

    async def _until(self, version: int) -> None:
        if self._saved >= version:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((version, waiter))
        await waiter

    def _close(self) -> None:
        self._closing = True
        self._retry_at = None  # one more attempt now, regardless of the backoff
        self._wake.set()

    async def _run(self) -> None:
        while await self._due():
            await self._attempt()

    async def _due(self) -> bool:
        """Wait until a write is due; return False if none will be."""
        loop = asyncio.get_running_loop()
        while not (self._closing and self._is_clean):
            when = self._when(loop.time())
            if when is not None and when <= loop.time():
                return True
            self._wake.clear()
            try:
                async with asyncio.timeout_at(when):
                    await self._wake.wait()
            except TimeoutError:
                return True  # a timer may end a little before its time
        return False

    def _when(self, now: float) -> float | None:
        if self._is_clean:
            return None
        if self._changed_at is None:
            self._changed_at = now
        if self._retry_at is not None:
            return self._retry_at
        if self._closing or max(self.state.created_last, self._desired) > self._saved:
            return now
        return self._changed_at + self._interval

    async def _attempt(self) -> None:
        version = self.state.version
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                await self._write(self.state.snapshot())
        except asyncio.CancelledError:
            if is_being_cancelled():
                raise
            self._failed(FlowError("something that the write started was cancelled"))
        except Exception as error:  # the flow continues, and the write is retried
            self._failed(error)
        else:
            self._succeeded(version)

    def _succeeded(self, version: int) -> None:
        self._saved = version
        self._failures = 0
        self._changed_at = self._retry_at = self._error = None
        for waiting_for, waiter in self._waiters:
            if waiting_for <= version and not waiter.done():
                waiter.set_result(None)
        self._waiters = [each for each in self._waiters if not each[1].done()]

    def _failed(self, error: Exception) -> None:
        self._error = error
        self._failures += 1
        wait = self._retry.wait(self._failures, None, self._source)
        if wait is None:
            self._give_up(error)
            wait = self._retry.longest_seconds
        self._retry_at = asyncio.get_running_loop().time() + wait
        log.warning("state not saved", error=sentence_of(error), retry_seconds=round(wait, 3))

    def _give_up(self, error: Exception) -> None:
        self._failures = 0
        for _, waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(StateNotSaved(error))
        self._waiters.clear()
