"""Tasks, and which of them come after which others."""

import difflib
import heapq
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pergola.flow.errors import Cycle, DuplicateTask, GraphError, UnknownDependency
from pergola.flow.retry import ONCE, Retry

Action = Callable[[], Awaitable[object]]
"""What a task does. It is idempotent: it may run again, at any time, and after a part of it."""
Skip = str | Callable[[], str | None] | None
"""Why there is nothing to do; or a function that says so when the task's turn has come."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One small idempotent step of a flow.

    Attributes:
        name: unique in the graph, and part of what users see.
        after: the names of the tasks that must be done before, each once.
        skip: a skipped task counts as done as soon as those before it are.
        timeout: seconds for all attempts together and the waits between them; None for no limit.
    """

    name: str
    action: Action
    after: tuple[str, ...] = ()
    skip: Skip = None
    timeout: float | None = None
    retry: Retry = ONCE

    def why_skipped(self) -> str | None:
        """Why there is nothing to do, asked now; None if there is."""
        reason = self.skip() if callable(self.skip) else self.skip
        return reason or None


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The chain of tasks that takes longest: no run can be faster, however parallel it is."""

    seconds: float
    tasks: tuple[str, ...]


class Graph:
    """The tasks of a flow.

    A task may name tasks that are added later; `order` finds what is missing, and cycles.

    Args:
        name: what the flow does, as users see it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._tasks: dict[str, Task] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        """The tasks as they were added."""
        return iter(self._tasks.values())

    def __contains__(self, name: str) -> bool:
        return name in self._tasks

    def __getitem__(self, name: str) -> Task:
        return self._tasks[name]

    def add(
        self,
        name: str,
        action: Action,
        *,
        after: Iterable[Task | str] = (),
        skip: Skip = None,
        timeout: float | None = None,
        retry: Retry = ONCE,
    ) -> Task:
        """Adds a task, which starts as soon as everything in `after` is done.

        Raises:
            DuplicateTask: there is a task of this name.
            UnknownDependency: a task in `after` belongs to another graph.
            GraphError: the task would be retried without end.
        """
        if name in self._tasks:
            raise DuplicateTask(f'flow "{self.name}": there are two tasks "{name}"')
        if retry.attempts is None and timeout is None:
            raise GraphError(
                f'flow "{self.name}": task "{name}" would be retried without end: '
                "give it a timeout or a number of attempts"
            )
        names = [each if isinstance(each, str) else self._own(name, each) for each in after]
        task = Task(name, action, tuple(dict.fromkeys(names)), skip, timeout, retry)
        self._tasks[name] = task
        return task

    def order(self) -> tuple[Task, ...]:
        """All tasks, each after those it comes after; else as they were added.

        Raises:
            UnknownDependency: a task comes after something that is not in the graph.
            Cycle: tasks wait for each other.
        """
        self._check_names()
        ordered = self._sorted()
        if len(ordered) < len(self._tasks):
            raise self._cycle({task.name for task in ordered})
        return tuple(ordered)

    def dependants(self) -> dict[str, tuple[Task, ...]]:
        """Which tasks come directly after a task, for every task, in the order they were added.

        Raises:
            UnknownDependency: a task comes after something that is not in the graph.
        """
        self._check_names()
        found: dict[str, list[Task]] = {name: [] for name in self._tasks}
        for task in self:
            for name in task.after:
                found[name].append(task)
        return {name: tuple(tasks) for name, tasks in found.items()}

    def critical_path(self, seconds: Mapping[str, float]) -> CriticalPath:
        """The chain that takes longest, for these durations; a task without one takes no time.

        Args:
            seconds: by the name of the task, such as `Result.durations`.

        Raises:
            GraphError: the graph is wrong, as `order` finds.
        """
        ends: dict[str, float] = {}
        before: dict[str, str | None] = {}
        for task in self.order():
            last = max(task.after, key=lambda name: ends[name], default=None)
            before[task.name] = last
            ends[task.name] = seconds.get(task.name, 0.0) + (ends[last] if last else 0.0)
        at: str | None = max(ends, key=lambda name: ends[name], default=None)
        longest = ends[at] if at is not None else 0.0
        chain: list[str] = []
        while at is not None:
            chain.append(at)
            at = before[at]
        return CriticalPath(longest, tuple(reversed(chain)))

    def _own(self, name: str, dependency: Task) -> str:
        if self._tasks.get(dependency.name) is not dependency:
            raise UnknownDependency(
                f'flow "{self.name}": task "{name}" comes after "{dependency.name}", '
                "which is a task of another flow"
            )
        return dependency.name

    def _check_names(self) -> None:
        for task in self:
            for name in task.after:
                if name not in self._tasks:
                    raise UnknownDependency(self._unknown(task.name, name))

    def _unknown(self, task: str, missing: str) -> str:
        text = f'flow "{self.name}": task "{task}" comes after "{missing}", which is no task of it'
        alike = difflib.get_close_matches(missing, self._tasks, n=1)
        return f'{text}; did you mean "{alike[0]}"?' if alike else text

    def _sorted(self) -> list[Task]:
        tasks = list(self)
        positions = {task.name: position for position, task in enumerate(tasks)}
        missing = [len(task.after) for task in tasks]
        dependants = self.dependants()
        ready = [position for position, count in enumerate(missing) if not count]
        ordered: list[Task] = []
        while ready:
            task = tasks[heapq.heappop(ready)]
            ordered.append(task)
            for dependant in dependants[task.name]:
                position = positions[dependant.name]
                missing[position] -= 1
                if not missing[position]:
                    heapq.heappush(ready, position)
        return ordered

    def _cycle(self, free: set[str]) -> Cycle:
        at = next(name for name in self._tasks if name not in free)
        walk: dict[str, None] = {}
        # Each task that is left over comes after another one that is, so the walk meets itself.
        while at not in walk:
            walk[at] = None
            at = next(name for name in self._tasks[at].after if name not in free)
        names = list(walk)
        names = names[names.index(at) :]
        chain = " after ".join(f'"{name}"' for name in [*names, at])
        return Cycle(f'flow "{self.name}": tasks wait for each other: {chain}', names)
