"""Waiting until a ManagedResource is applied, healthy, rolled out or deleted (spec 10 §7).

It is watched; only if a client may not watch ManagedResources, it is read every two seconds.
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
from pergola.kube import states as object_states
from pergola.kube.client import Client

POLL_SECONDS: Final = 2.0

Check: TypeAlias = Callable[[JsonObject], str | None]
"""Returns None if a ManagedResource is in the desired state, otherwise the problem."""
States: TypeAlias = Callable[[Client, Key], AsyncGenerator[JsonObject | None]]
"""Yields the states of a ManagedResource: now, and after each change; None while there is none."""


async def wait_until(
    client: Client, key: Key, timeout: float, *checks: Check, states: States | None = None
) -> JsonObject:
    """Return the ManagedResource once it passes all checks; it need not exist yet.

    Args:
        timeout: in seconds.

    Raises:
        WaitTimeout: the last problem reported by the first failing check.
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
                    problem = "it does not exist"
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
    """Return the ManagedResource once its current generation is applied and healthy.

    Raises:
        WaitTimeout, KubeError: see `wait_until`.
    """
    return await wait_until(client, key, timeout, applied_problem, healthy_problem, states=states)


async def wait_not_progressing(
    client: Client, key: Key, timeout: float, *, states: States | None = None
) -> JsonObject:
    """Return the ManagedResource once it is applied, healthy and completely rolled out.

    Raises:
        WaitTimeout, KubeError: see `wait_until`.
    """
    checks = (applied_problem, healthy_problem, progressing_problem)
    return await wait_until(client, key, timeout, *checks, states=states)


async def wait_deleted(
    client: Client, key: Key, timeout: float, *, states: States | None = None
) -> None:
    """Wait until the ManagedResource, and therefore its objects, are gone.

    Raises:
        WaitTimeout: it still exists; the text says what blocks the deletion, if known.
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


def watched(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
    """Yield the states of a ManagedResource, without end; see `pergola.kube.states`."""
    return object_states.watched(client, MANAGED_RESOURCE, key, POLL_SECONDS)


def polled(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
    """Like `watched`, but by polling every two seconds, which only needs `get`."""
    return object_states.polled(client, MANAGED_RESOURCE, key, POLL_SECONDS)
