"""A client-side rate limit: a token bucket like client-go's QPS and burst."""

import asyncio


class Throttle:
    """A limit of `burst` requests at once and `qps` per second after that, in order."""

    def __init__(self, qps: float, burst: int | None = None) -> None:
        self._interval = 1.0 / qps
        # The time at which the bucket would be full again, on the loop's clock.
        self._tolerance = self._interval * max(1, burst or 1)
        self._full_at = 0.0

    async def wait(self) -> None:
        """Wait until the next request may be sent."""
        now = asyncio.get_running_loop().time()
        self._full_at = max(self._full_at, now) + self._interval
        delay = self._full_at - now - self._tolerance
        if delay > 0:
            await asyncio.sleep(delay)
