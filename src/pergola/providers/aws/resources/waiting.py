"""Wait for AWS: until something is ready, is gone, or is visible everywhere."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.providers.aws.resources.step import Work
from pergola.runtime.retrying import retrying

T = TypeVar("T")
LOOKS: Final = 3
"""Attempts to describe a new resource before it counts as gone."""


async def wait_until(work: Work, look: Callable[[], Awaitable[T | None]]) -> T:
    """Poll until the answer is not None; the step's timeout is the limit."""
    while True:
        found = await look()
        if found is not None:
            return found
        await asyncio.sleep(work.poll_seconds)


async def once_visible(work: Work, operation: str, **parameters: object) -> JsonObject:
    """Call EC2 about something new, which AWS may not see everywhere yet.

    Raises:
        CloudError: AWS refused, or does not see it after several looks.
    """
    with retrying() as failed:
        for _ in range(LOOKS - 1):
            try:
                return await work.aws.call("ec2", operation, **parameters)
            except NotFound as error:
                failed(error)
                await asyncio.sleep(work.poll_seconds)
        return await work.aws.call("ec2", operation, **parameters)


async def all_done(*doings: Awaitable[object]) -> None:
    """Do several things at once; each is finished, even if another one fails.

    Raises:
        ExceptionGroup: what failed; a single failure is raised as it is.
    """
    results = await asyncio.gather(*doings, return_exceptions=True)
    failures = [each for each in results if isinstance(each, Exception)]
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise ExceptionGroup("several things failed", failures)
