"""Task groups that neither lose nor invent a cancellation."""

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from contextvars import Context
from types import TracebackType
from typing import Any, TypeAlias, TypeVar, overload

from pergola.runtime.failures import Failures

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Work: TypeAlias = Coroutine[Any, Any, T]


def is_being_cancelled() -> bool:
    """Return whether the running asyncio task itself was cancelled, not one that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class TaskGroup(asyncio.TaskGroup):
    """A task group that ends as cancelled if and only if it was cancelled.

    It raises `Failures`, whose text names the errors of the tasks, and differs from asyncio's in
    two cases, the second one in Python 3.11:

    - Tasks fail while the group is cancelled. It raises their errors, and code that handles errors
      continues, without being cancelled again. A replica that had lost its lease stayed alive this
      way, neither leading nor exiting.
    - A task fails while the group waits for its tasks. The surrounding task then counts as being
      cancelled for the rest of its life.
    """

    def __init__(self) -> None:
        super().__init__()
        self._running: set[asyncio.Task[Any]] = set()

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Start a task of the group."""
        task = super().create_task(coro, name=name, context=context)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for the tasks.

        Raises:
            CancelledError: The group was cancelled from outside; its cause is the group of its
                tasks' errors.
            Failures: Tasks failed.
            BaseExceptionGroup: Tasks ended with more than errors, such as a cancellation.
        """
        if error is None:
            try:
                while self._running:
                    await asyncio.wait(self._running)
            except asyncio.CancelledError as cancelled:
                kind, error = type(cancelled), cancelled
        try:
            await super().__aexit__(kind, error, traceback)
        except BaseExceptionGroup as failed:
            if is_being_cancelled():
                raise asyncio.CancelledError from failed
            if isinstance(failed, ExceptionGroup):
                raise Failures(failed.message, failed.exceptions) from None
            raise


async def gathered(works: Iterable[Work[T]]) -> list[T]:
    """Run coroutines concurrently, and return their results in order.

    If one fails, the others are cancelled and have ended when its error is raised. `asyncio.gather`
    leaves them running.

    Raises:
        Exception: the first error of a coroutine.
    """
    try:
        async with TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


@overload
async def together(first: Work[A], second: Work[B], /) -> tuple[A, B]: ...
@overload
async def together(first: Work[A], second: Work[B], third: Work[C], /) -> tuple[A, B, C]: ...
async def together(*works: Work[Any]) -> tuple[Any, ...]:
    """Run coroutines with results of several types; otherwise as `gathered`."""
    return tuple(await gathered(works))
