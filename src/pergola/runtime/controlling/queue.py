"""Keys that are due for reconciliation, now or later.

The semantics of client-go's rate-limiting queue (spec 10 §4.1): a key that is added while it waits
is queued once; one that is added while it runs runs again afterwards, never concurrently; failures
are retried after 5 ms · 2^n, at most 1,000 s, and all failures together share a bucket of 10 per
second with a burst of 100.
"""

import asyncio
import heapq
import itertools
from collections import deque
from typing import Final, Generic, Protocol, TypeVar

from pergola.runtime.clock import monotonic

K = TypeVar("K")

FIRST_RETRY_SECONDS: Final = 0.005
LAST_RETRY_SECONDS: Final = 1000.0
_BUCKET_INTERVAL: Final = 0.1
_BUCKET_BURST: Final = 100
_FEW: Final = 100
"""Superseded and cancelled times that may remain in the heap, besides as many as there are keys."""


class QueueObserver(Protocol):
    """An observer of a queue, such as the `workqueue_*` metrics."""

    def added(self) -> None:
        """Record that a key was added."""

    def got(self, waited_seconds: float) -> None:
        """Record that a worker took a key."""

    def done(self, work_seconds: float) -> None:
        """Record that a worker finished a key."""

    def retried(self) -> None:
        """Record that a key failed and will be retried."""


class Queue(Generic[K]):
    """The keys to reconcile; for one event loop.

    Args:
        observer: is notified of every change, for metrics.
        last_retry: the maximum backoff of a key, in seconds.
    """

    def __init__(
        self, observer: QueueObserver | None = None, *, last_retry: float = LAST_RETRY_SECONDS
    ) -> None:
        self._observer = observer
        self._last_retry = last_retry
        self._ready: deque[K] = deque()
        self._added_at: dict[K, float] = {}
        self._running: dict[K, float] = {}
        self._again: set[K] = set()
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._failures: dict[K, int] = {}
        self._bucket_full_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        """Return how many keys are ready to run."""
        return len(self._ready)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ready or running; keys that are due later do not count."""
        return not self._ready and not self._running and not self._again

    def add(self, key: K) -> None:
        """Make a key ready now; a later time that was requested for it remains."""
        if key in self._running:
            self._again.add(key)
            return
        if key in self._added_at:
            return
        self._added_at[key] = monotonic()
        self._ready.append(key)
        if self._observer:
            self._observer.added()
        self._wake_one()

    def add_after(self, key: K, seconds: float) -> None:
        """Make a key ready after `seconds`; the earliest of several requested times counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = monotonic() + seconds
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, next(self._order), key))
        if len(self._heap) > _FEW + 2 * len(self._due):
            self._heap = [each for each in self._heap if self._due.get(each[2]) == each[0]]
            heapq.heapify(self._heap)
        self._arm()

    def retry(self, key: K, at_most: float | None = None, *, at_least: float = 0.0) -> float:
        """Make a failed key ready after its backoff; return the delay in seconds.

        Args:
            at_most: limits this backoff further, in seconds.
            at_least: the seconds that a busy server asks for.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        own = FIRST_RETRY_SECONDS * 2.0 ** min(failures, 60)
        longest = self._last_retry if at_most is None else min(at_most, self._last_retry)
        delay = max(min(own, longest), self._bucket_delay(), at_least)
        if self._observer:
            self._observer.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """Reset the backoff of a key that succeeded."""
        self._failures.pop(key, None)

    def cancel(self, key: K) -> None:
        """Drop the time requested for a key, because it runs now or was deleted."""
        self._due.pop(key, None)

    async def get(self) -> K:
        """Wait for the next key and mark it as running; the caller must call `done`."""
        while not self._ready:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake_one()  # we consumed this wake-up; pass it on
                raise
        key = self._ready.popleft()
        now = monotonic()
        waited = now - self._added_at.pop(key)
        self._running[key] = now
        if self._observer:
            self._observer.got(waited)
        return key

    def done(self, key: K) -> None:
        """End the run of a key; if it was added during the run, it is ready again."""
        took = monotonic() - self._running.pop(key)
        if self._observer:
            self._observer.done(took)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _bucket_delay(self) -> float:
        now = monotonic()
        self._bucket_full_at = max(self._bucket_full_at, now) + _BUCKET_INTERVAL
        return self._bucket_full_at - now - _BUCKET_INTERVAL * _BUCKET_BURST

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)  # superseded by an earlier time, or cancelled
        if self._heap:
            self._timer = asyncio.get_running_loop().call_at(self._heap[0][0], self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = monotonic()
        while self._heap and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
        self._arm()
