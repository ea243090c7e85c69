"""The queue of requests for the tokens of one bucket: users take turns."""

import asyncio
from collections import deque
from typing import Final

from pergola.cloud.aws.quotas.bucket import Bucket
from pergola.cloud.errors import CloudError, Throttled

_Turn = asyncio.Future[None]
_SOON: Final = 1e-6
"""Seconds; otherwise a timer may fire just before the token is complete."""


class Line:
    """A bucket and the requests that wait for it.

    Users take turns with one request each: a user with many requests does not delay others.

    Args:
        of: the call for errors, such as `ec2 DescribeVpcs in eu-west-1`.
    """

    def __init__(self, bucket: Bucket, of: str) -> None:
        self._bucket = bucket
        self._of = of
        self._waiting: dict[str, deque[_Turn]] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def backlog(self) -> float:
        """The seconds that a new user's request would wait if all other users had a turn first."""
        now = asyncio.get_running_loop().time()
        return self._bucket.wait(now) + len(self._waiting) / self._bucket.rate

    async def turn(self, user: str, until: float) -> None:
        """Wait for a token.

        Args:
            until: a time on the event loop's clock; a request that cannot have its turn by then
                fails at once.

        Raises:
            Throttled: no token is available in time; the error is AWS's last refusal, or our own.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not self._waiting and not self._bucket.wait(now):
            self._bucket.take(now)
            return
        if now + self._expected(user, now) > until:
            raise self._refusal()
        mine = loop.create_future()
        self._waiting.setdefault(user, deque()).append(mine)
        self._arm()
        try:
            async with asyncio.timeout_at(until):
                await mine
        except BaseException as error:
            self._leave(user, mine)
            if isinstance(error, TimeoutError):
                raise self._refusal() from None
            raise

    def learn(self, outcome: CloudError | None) -> None:
        """Adapt the rate to the outcome of a request."""
        self._bucket.learn(outcome, asyncio.get_running_loop().time())

    def _expected(self, user: str, now: float) -> float:
        """Return the seconds until a new request of a user has its turn."""
        rounds = len(self._waiting.get(user, ())) + 1
        before = sum(
            min(len(turns), rounds) for name, turns in self._waiting.items() if name != user
        )
        return self._bucket.wait(now) + (before + rounds - 1) / self._bucket.rate

    def _refusal(self) -> Throttled:
        return self._bucket.throttled or Throttled(
            f"{self._of}: too many requests of this account wait for the rate that AWS allows; it "
            "is tried again later",
            code="RequestLimitExceeded",
            call=self._of,
        )

    def _leave(self, user: str, mine: _Turn) -> None:
        """Remove a request that no longer waits; return its token if it was not used."""
        if mine.done() and not mine.cancelled():
            self._bucket.give_back()
            return
        turns = self._waiting.get(user)
        if turns is not None and mine in turns:
            turns.remove(mine)
            if not turns:
                del self._waiting[user]

    def _arm(self) -> None:
        if self._timer is None and self._waiting:
            loop = asyncio.get_running_loop()
            wait = self._bucket.wait(loop.time()) + _SOON
            self._timer = loop.call_later(wait, self._serve)

    def _serve(self) -> None:
        """Give tokens to users in turn, while there are any."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._waiting and not self._bucket.wait(now):
            user = next(iter(self._waiting))
            turns = self._waiting.pop(user)
            mine = turns.popleft()
            if turns:
                self._waiting[user] = turns  # at the end
            if not mine.done():
                self._bucket.take(now)
                mine.set_result(None)
        self._arm()
