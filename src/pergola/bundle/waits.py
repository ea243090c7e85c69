"""Waits for what the resource manager makes of a ManagedResource (spec 10 §7).

Waiting is watching; only who may not watch ManagedResources asks every two seconds.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, TypeAlias

from pergola.api.managed_resource_status import (
    applied_problem,
    deletion_problem,
    healthy_problem,
    progressing_problem,
)
from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.errors import WaitTimeout
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, Gone, KubeError, NotFound, Unreachable
from pergola.kube.watch import watch

POLL_SECONDS: Final = 2.0
_WATCH_SECONDS: Final = 300

Check: TypeAlias = Callable[[JsonObject], str | None]
"""Answers None when a ManagedResource is as wanted, otherwise why it is not."""
Watch: TypeAlias = Callable[[Client, Key], AsyncGenerator[JsonObject | None]]
"""What a ManagedResource looks like now, and after each change; None while there is none."""


async def states(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
    """What a ManagedResource looks like now, and after each change; None while there is none.

    Goes on for ever; some changes may be passed over, but never the last one.

    Raises:
        KubeError: it cannot be read. A watch that breaks off is no error.
    """
    try:
        while True:
            async for state in _watched(client, key):
                yield state
    except Forbidden:
        async for state in polled(client, key):
            yield state


async def polled(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
    """The same by asking every two seconds, which takes no permission but to get."""
    while True:
        try:
            yield await client.get(MANAGED_RESOURCE, key)
        except NotFound:
            yield None
        await asyncio.sleep(POLL_SECONDS)


async def wait_healthy(
    client: Client,
    key: Key,
    timeout: float,  # noqa: ASYNC109
    *,
    watch: Watch = states,
    check: Check | None = None,
) -> JsonObject:
    """Returns the ManagedResource once its present generation is applied and healthy.

    One that is not there yet is waited for.

    Args:
        timeout: in seconds.
        check: another idea of what is waited for.

    Raises:
        WaitTimeout: says what was still missing.
        KubeError: it cannot be read.
    """
    return await _wait(client, key, timeout, watch, check or _healthy)


async def wait_not_progressing(
    client: Client,
    key: Key,
    timeout: float,  # noqa: ASYNC109
    *,
    watch: Watch = states,
) -> JsonObject:
    """The same, but its objects are rolled out completely as well."""
    return await _wait(client, key, timeout, watch, _rolled_out)
