"""When tasks and waits were first seen: the cluster does not record when a task began."""

from dataclasses import replace
from datetime import datetime

from pergola.operator.reconcile.picture.picture import Picture, State, Task, Wait


class Times:
    """The start times of running tasks, and of waits for objects that do not record them."""

    def __init__(self) -> None:
        self._is_first = True
        self._tasks: dict[str, datetime | None] = {}
        self._waits: dict[tuple[str, str], datetime] = {}

    def added_to(self, picture: Picture) -> Picture:
        """Return a picture with these times, and record its new ones.

        A task that runs in the first picture may have been running for long: its oldest wait
        determines the time.
        """
        running = {task.name for task in picture.of(State.RUNNING)}
        begin = None if self._is_first else picture.at
        self._tasks = {name: self._tasks.get(name, begin) for name in running}
        waits = {(task.name, wait.subject) for task in picture.tasks for wait in task.waits}
        self._waits = {each: self._waits.get(each, picture.at) for each in waits}
        self._is_first = False
        return replace(picture, tasks=tuple(self._task(task, picture.at) for task in picture.tasks))

    def _task(self, task: Task, now: datetime) -> Task:
        waits = tuple(self._wait(task, wait, now) for wait in task.waits)
        since = self._tasks.get(task.name)
        if task.state is State.RUNNING and since is None:
            since = min((wait.since for wait in waits if wait.since is not None), default=None)
        return replace(task, waits=waits, since=since)

    def _wait(self, task: Task, wait: Wait, now: datetime) -> Wait:
        seen = self._waits[task.name, wait.subject]
        return wait if wait.since or seen == now else wait._replace(since=seen)
