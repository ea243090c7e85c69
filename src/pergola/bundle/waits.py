"""Waits for what the resource manager makes of a ManagedResource (spec 10 §7).

Waiting is watching; only who may not watch ManagedResources asks every two seconds.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
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
from pergola.kube.client import Client, ObjectList
from pergola.kube.errors import Forbidden, Gone, Unreachable
from pergola.kube.watch import watch

POLL_SECONDS: Final = 2.0
_WATCH_SECONDS: Final = 300
_PAUSE_SECONDS: Final = 1.0

Check: TypeAlias = Callable[[JsonObject], str | None]
"""Answers None when a ManagedResource is as wanted, otherwise why it is not."""
States: TypeAlias = Callable[[Client, Key], AsyncGenerator[JsonObject | None]]
"""What a ManagedResource looks like now, and after each change; None while there is none."""


async def wait_until(
    client: Client, key: Key, timeout: float, *checks: Check, states: States | None = None
) -> JsonObject:
    """Returns the ManagedResource once it passes all checks; waits for one that is not there yet.

    Args:
        timeout: in seconds.

    Raises:
        WaitTimeout: says what the first check that failed had to say last.
        KubeError: the ManagedResource cannot be read.
    """
    problem: str | None = "it was not read yet"
    try:
        async with (
            asyncio.timeout(timeout) as limit,
            aclosing((states or watched)(client, key)) as seen,
        ):
            async for resource in seen:
                if resource is None:
                    problem = "it is not there"
                    continue
                problem = next(filter(None, (check(resource) for check in checks)), None)
                if problem is None:
                    return resource
    except TimeoutError:
        if not limit.expired():
            raise
    raise WaitTimeout(f"ManagedResource {key} is not ready after {timeout:g} s: {problem}")


async def wait_healthy(
    client: Client, key: Key, timeout: float, *, states: States | None = None
) -> JsonObject:
    """Returns the ManagedResource once its present generation is applied and healthy.

    Raises:
        WaitTimeout, KubeError: see `wait_until`.
    """
    return await wait_until(client, key, timeout, applied_problem, healthy_problem, states=states)


async def wait_not_progressing(
    client: Client, key: Key, timeout: float, *, states: States | None = None
) -> JsonObject:
    """Returns the ManagedResource once it is applied, healthy and rolled out completely.

    Raises:
        WaitTimeout, KubeError: see `wait_until`.
    """
    checks = (applied_problem, healthy_problem, progressing_problem)
    return await wait_until(client, key, timeout, *checks, states=states)


async def wait_deleted(
    client: Client, key: Key, timeout: float, *, states: States | None = None
) -> None:
    """Returns once there is no ManagedResource, which is when its objects are gone as well.

    Raises:
        WaitTimeout: says what holds the deletion up, if that is known.
        KubeError: the ManagedResource cannot be read.
    """
    problem: str | None = None
    try:
        async with (
            asyncio.timeout(timeout) as limit,
            aclosing((states or watched)(client, key)) as seen,
        ):
            async for resource in seen:
                if resource is None:
                    return
                problem = deletion_problem(resource)
    except TimeoutError:
        if not limit.expired():
            raise
    because = f": {problem}" if problem else ""
    raise WaitTimeout(f"ManagedResource {key} is not deleted after {timeout:g} s{because}")


async def watched(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
    """The states of a ManagedResource, for ever; some may be passed over, but never the last one.

    Raises:
        KubeError: it cannot be read. A watch that breaks off is no error.
    """
    try:
        while True:
            async with aclosing(_list_and_watch(client, key)) as seen:
                async for state in seen:
                    yield state
            await asyncio.sleep(_PAUSE_SECONDS)
    except Forbidden:
        async with aclosing(polled(client, key)) as seen:
            async for state in seen:
                yield state


async def polled(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
    """The same by asking every two seconds, which takes no permission but `get`."""
    while True:
        yield await client.find(MANAGED_RESOURCE, key)
        await asyncio.sleep(POLL_SECONDS)


async def _list_and_watch(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
    now = await _list(client, key)
    yield now.items[0] if now.items else None
    changes = watch(
        client,
        await client.resource(MANAGED_RESOURCE),
        key.namespace,
        fields=_selector(key),
        resource_version=now.resource_version,
        timeout_seconds=_WATCH_SECONDS,
    )
    with suppress(Gone, Unreachable):
        async with aclosing(changes):
            async for event in changes:
                if event.type in ("ADDED", "MODIFIED"):
                    yield event.object
                elif event.type == "DELETED":
                    yield None


async def _list(client: Client, key: Key) -> ObjectList:
    pages = client.pages(MANAGED_RESOURCE, key.namespace, fields=_selector(key))
    async with aclosing(pages):
        return await anext(pages)


def _selector(key: Key) -> str:
    return f"metadata.name={key.name}"
