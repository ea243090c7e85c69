"""Limit the time of one reconciliation of an Extension or a Gardenlet."""

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from pergola.garden.landscape.errors import OperatorError

LIMIT: Final = 170.0
"""Seconds for all steps of a run; the rest of its three minutes is for the status."""

T = TypeVar("T")


async def within_limit(steps: Awaitable[T]) -> T:
    """Run the steps within the time limit, and return their result.

    Raises:
        OperatorError: They did not end in time, and were interrupted.
    """
    try:
        async with asyncio.timeout(LIMIT) as limit:
            return await steps
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise OperatorError(f"the steps did not end within {LIMIT:g} s") from error
