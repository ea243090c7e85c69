"""Waiting for an object on a watch, and saying meanwhile what is wrong with it."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube import states
from pergola.kube.client import Client
from pergola.operator.garden.errors import NotReady

Problem = Callable[[JsonObject | None], str | None]
"""Returns why an object is not as it should be, or None. The object is None if it is absent."""
Note = Callable[[str, str], None]
"""Receives an awaited object and its problem, which is empty once the wait is over."""

_POLL_SECONDS: Final = 2.0


def unnoted(subject: str, problem: str) -> None:
    """Ignore what is awaited."""


def gone(obj: JsonObject | None) -> str | None:
    """Return that an object still exists, or None."""
    return "it still exists" if obj else None


async def wait_until(
    client: Client,
    gvk: GroupVersionKind,
    key: Key,
    problem_of: Problem,
    limit: float,
    note: Note = unnoted,
) -> JsonObject | None:
    """Return the object when it is as it should be; None if it should not exist.

    Args:
        limit: In seconds.
        note: Is called with each new problem.

    Raises:
        NotReady: With the object, and what is wrong with it.
        KubeError: It cannot be read.
    """
    subject, problem = f"{gvk.kind} {key}", "it was not read yet"
    try:
        async with asyncio.timeout(limit) as deadline:
            async with aclosing(states.watched(client, gvk, key, _POLL_SECONDS)) as seen:
                async for obj in seen:
                    found = problem_of(obj)
                    if found is None:
                        return obj
                    problem = found
                    note(subject, problem)
    except TimeoutError:
        if not deadline.expired():
            raise
    finally:
        note(subject, "")
    raise NotReady(gvk.kind, key, limit, problem)
