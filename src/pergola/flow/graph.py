"""Tasks and the order in which they may run."""

import difflib
import heapq
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from pergola.flow.errors import Cycle, DuplicateTask, GraphError, UnknownDependency
from pergola.flow.retry import ONCE, Retry

Action = Callable[[], Awaitable[object]]
"""The work of a task. It is idempotent: it may run again at any time, even after a partial run."""
Skip = str | Callable[[], str | None] | None
"""Why a task has nothing to do, or a function that answers this when its turn has come."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One small idempotent step of a flow.

    Attributes:
        name: unique in the graph, and shown to users.
        after: names of the tasks that must finish first.
        after_if_present: names of tasks that must finish first if the graph contains them.
        skip: a skipped task counts as done once its dependencies are.
        timeout: the time limit in seconds for all attempts and the waits between them; None for no
            limit.
    """

    name: str
    action: Action
    after: tuple[str, ...] = ()
    after_if_present: tuple[str, ...] = ()
    skip: Skip = None
    timeout: float | None = None
    retry: Retry = ONCE

    def why_skipped(self) -> str | None:
        """Return why the task has nothing to do right now, or None if it has work."""
        reason = self.skip() if callable(self.skip) else self.skip
        return reason or None


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The slowest chain of tasks: a lower limit for the duration of a run, however parallel."""

    seconds: float
    tasks: tuple[str, ...]


class Graph:
    """The tasks of a flow.

    A task may depend on one that is added later; `order` reports missing tasks and cycles.

    Args:
        name: the purpose of the flow, as shown to users.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._tasks: dict[str, Task] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Task]:
        """Iterate over the tasks in the order in which they were added."""
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
        after_if_present: Iterable[str] = (),
        skip: Skip = None,
        timeout: float | None = None,
        retry: Retry = ONCE,
    ) -> Task:
        """Add a task that starts as soon as its dependencies are done.

        Args:
            after_if_present: dependencies that some variants of this flow lack.

        Raises:
            DuplicateTask: the name is already used.
            UnknownDependency: a task in `after` belongs to another graph.
            GraphError: the task would be retried forever.
        """
        if name in self._tasks:
            raise DuplicateTask(f'flow "{self.name}": the name of task "{name}" is not unique')
        if retry.attempts is None and timeout is None:
            raise GraphError(
                f'flow "{self.name}": task "{name}" would be retried without end: '
                "give it a timeout or a number of attempts"
            )
        names = [each if isinstance(each, str) else self._own(name, each) for each in after]
        required, optional = tuple(dict.fromkeys(names)), tuple(dict.fromkeys(after_if_present))
        task = Task(name, action, required, optional, skip, timeout, retry)
        self._tasks[name] = task
        return task

    def dependencies(self) -> dict[str, tuple[Task, ...]]:
        """Return the direct dependencies of each task, by the task's name.

        Raises:
            UnknownDependency: a task depends on one that is not in the graph.
        """
        return {
            task.name: tuple(self._tasks[name] for name in self._names_before(task))
            for task in self
        }

    def dependants(self) -> dict[str, tuple[Task, ...]]:
        """Return the tasks that directly depend on each task, by its name, in the order added.

        Raises:
            UnknownDependency: a task depends on one that is not in the graph.
        """
        found: dict[str, list[Task]] = {name: [] for name in self._tasks}
        for name, dependencies in self.dependencies().items():
            for each in dependencies:
                found[each.name].append(self._tasks[name])
        return {name: tuple(tasks) for name, tasks in found.items()}

    def sorter(self) -> TopologicalSorter[str]:
        """Return a prepared sorter of the tasks' names; ready tasks come in the order added.

        Raises:
            UnknownDependency: a task depends on one that is not in the graph.
            Cycle: tasks wait for each other.
        """
        sorter: TopologicalSorter[str] = TopologicalSorter(dict.fromkeys(self._tasks, ()))
        for name, found in self.dependencies().items():
            sorter.add(name, *(each.name for each in found))
        try:
            sorter.prepare()
        except CycleError as error:
            raise self._cycle(error.args[1]) from None
        return sorter

    def order(self) -> tuple[Task, ...]:
        """Return the tasks, each after its dependencies, otherwise in the order added.

        Raises:
            UnknownDependency: a task depends on one that is not in the graph.
            Cycle: tasks wait for each other.
        """
        sorter = self.sorter()
        tasks = list(self)
        positions = {task.name: position for position, task in enumerate(tasks)}
        ready: list[int] = []
        ordered: list[Task] = []
        while sorter.is_active():
            for name in sorter.get_ready():
                heapq.heappush(ready, positions[name])
            task = tasks[heapq.heappop(ready)]
            ordered.append(task)
            sorter.done(task.name)
        return tuple(ordered)

    def critical_path(self, seconds: Mapping[str, float]) -> CriticalPath:
        """Return the slowest chain for these durations; missing durations count as 0.

        Args:
            seconds: by task name, such as `Result.durations`.

        Raises:
            GraphError: the graph is invalid, see `order`.
        """
        ends: dict[str, float] = {}
        before: dict[str, str | None] = {}
        dependencies = self.dependencies()
        for task in self.order():
            names = (each.name for each in dependencies[task.name])
            last = max(names, key=lambda name: ends[name], default=None)
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

    def _names_before(self, task: Task) -> list[str]:
        missing = next((name for name in task.after if name not in self._tasks), None)
        if missing is not None:
            raise UnknownDependency(self._unknown(task.name, missing))
        optional = (name for name in task.after_if_present if name in self._tasks)
        return list(dict.fromkeys([*task.after, *optional]))

    def _unknown(self, task: str, missing: str) -> str:
        after = f'task "{task}" comes after "{missing}", which is not in the flow'
        text = f'flow "{self.name}": {after}'
        alike = difflib.get_close_matches(missing, self._tasks, n=1)
        return f'{text}; did you mean "{alike[0]}"?' if alike else text

    def _cycle(self, walk: list[str]) -> Cycle:
        """Describe a cycle in which each task leads to one that waits for it."""
        names = walk[:0:-1]
        first = min(range(len(names)), key=lambda index: list(self._tasks).index(names[index]))
        names = [*names[first:], *names[:first]]
        chain = " after ".join(f'"{name}"' for name in [*names, names[0]])
        return Cycle(f'flow "{self.name}": tasks wait for each other: {chain}', names)
