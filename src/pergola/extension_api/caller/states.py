"""The latest state of an object, for waits with a deadline."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager

from pergola.kube.states import State, States


class Latest:
    """The latest state of an object."""

    def __init__(self) -> None:
        self._arrived: asyncio.Queue[State | Exception] = asyncio.Queue()

    async def next(self, until: float) -> State:
        """Return the next state.

        Args:
            until: the deadline, on the event loop's clock.

        Raises:
            TimeoutError: no state arrived in time.
            KubeError: the object can no longer be read.
        """
        async with asyncio.timeout_at(until):
            arrived = await self._arrived.get()
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    async def follow(self, states: States) -> None:
        """Receive states until cancelled; `next` raises the error that ends them."""
        try:
            async with aclosing(states):
                async for state in states:
                    self._arrived.put_nowait(state)
        except Exception as error:
            self._arrived.put_nowait(error)


@asynccontextmanager
async def following(states: States) -> AsyncGenerator[Latest]:
    """Follow states for the duration of the block."""
    latest = Latest()
    task = asyncio.create_task(latest.follow(states))
    try:
        yield latest
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
