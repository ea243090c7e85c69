"""Waiting for an object with a watch, and reporting its problem in the meantime."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.garden.landscape.errors import NotReady
from pergola.kube import states
from pergola.kube.client import Client

Problem = Callable[[JsonObject | None], str | None]
"""Returns the problem of an object, or None. The object is None if it does not exist."""
Note = Callable[[str, str], None]
"""Receives an awaited object and its problem, which is empty once the wait is over."""

_POLL_SECONDS: Final = 2.0


def unnoted(subject: str, problem: str) -> None:
    """Ignore awaited objects."""


def gone(obj: JsonObject | None) -> str | None:
    """Return a problem while an object exists; None once it is gone."""
    return "it still exists" if obj else None


async def wait_until(
    client: Client,
    gvk: GroupVersionKind,
    key: Key,
    problem_of: Problem,
    limit: float,
    note: Note = unnoted,
) -> JsonObject | None:
    """Return the object once it is as it should be; None if it should not exist.

    Args:
        limit: In seconds.
        note: Called with each new problem.

    Raises:
        NotReady: The time is over; the text names the object and its problem.
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
