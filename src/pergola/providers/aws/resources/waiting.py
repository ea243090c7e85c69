"""Waiting for AWS: until something is ready, deleted, or visible everywhere."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.providers.aws.resources.step import Work
from pergola.runtime.retrying import retrying

T = TypeVar("T")
POLLS: Final = 3
"""The number of attempts to describe a new resource before it counts as deleted."""


async def wait_until(work: Work, observe: Callable[[], Awaitable[T | None]]) -> T:
    """Poll until the answer is not None; the step's timeout is the limit."""
    while True:
        found = await observe()
        if found is not None:
            return found
        await asyncio.sleep(work.poll_seconds)


async def once_visible(work: Work, operation: str, **parameters: object) -> JsonObject:
    """Call EC2 about something new, which may not be visible everywhere yet.

    Raises:
        CloudError: AWS refused, or does not find it after several attempts.
    """
    with retrying() as failed:
        for _ in range(POLLS - 1):
            try:
                return await work.aws.call("ec2", operation, **parameters)
            except NotFound as error:
                failed(error)
                await asyncio.sleep(work.poll_seconds)
        return await work.aws.call("ec2", operation, **parameters)
