"""Waiting for an object with a watch, and reporting its problem in the meantime."""

import asyncio
from collections.abc import Awaitable, Callable
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
Report = Callable[[str], None]
"""Receives the problem of an awaited object."""

POLL_SECONDS: Final = 2.0
"""The seconds between two reads where an object cannot be watched."""


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

    async def wait(report: Report) -> JsonObject | None:
        return await without_problem(client, gvk, key, problem_of, report)

    return await wait_at_most(limit, gvk, key, wait, note)


async def wait_at_most(
    limit: float,
    gvk: GroupVersionKind,
    key: Key,
    wait: Callable[[Report], Awaitable[JsonObject | None]],
    note: Note,
) -> JsonObject | None:
    """Return what a wait for an object returns; raises as `wait_until` does.

    Args:
        limit: In seconds.
        wait: Waits without a limit, and reports each new problem.
    """
    subject, problem = f"{gvk.kind} {key}", "it was not read yet"

    def report(found: str) -> None:
        nonlocal problem
        problem = found
        note(subject, problem)

    try:
        async with asyncio.timeout(limit) as deadline:
            return await wait(report)
    except TimeoutError:
        if not deadline.expired():
            raise
    finally:
        note(subject, "")
    raise NotReady(gvk.kind, key, limit, problem)


async def without_problem(
    client: Client, gvk: GroupVersionKind, key: Key, problem_of: Problem, report: Report
) -> JsonObject | None:
    """Return the object once it has no problem, without a limit of time.

    Raises:
        KubeError: It cannot be read.
    """
    async with aclosing(states.watched(client, gvk, key, POLL_SECONDS)) as seen:
        async for obj in seen:
            problem = problem_of(obj)
            if problem is None:
                return obj
            report(problem)
    raise AssertionError  # the states of an object have no end
