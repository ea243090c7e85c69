"""The tasks and status of a Garden at one moment, as values."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

from pergola.api.objects import Identity, JsonObject


class State(StrEnum):
    """The state of a task."""

    DONE = "done"
    RUNNING = "running"
    PENDING = "pending"
    """It has not started: it comes after unfinished tasks."""
    SKIPPED = "skipped"
    FAILED = "failed"
    UNHEALTHY = "unhealthy"
    """It was done, but an object that it waited for is no longer ready."""


class Wait(NamedTuple):
    """An object that a task waits for.

    Attributes:
        subject: Kind and key, such as `Etcd garden/virtual-garden-etcd-main`.
        problem: Why it is not as it should be.
        since: When that began; None if unknown.
        exists: Whether the object exists.
        identity: The object; None if only the operator's report names it.
    """

    subject: str
    problem: str
    since: datetime | None = None
    exists: bool = True
    identity: Identity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of a flow.

    Attributes:
        why: Why it is skipped or failed; else empty.
        waits: The objects that it waits for while it runs or is unhealthy.
        after: Names of the unfinished tasks that precede it.
        dependencies: Names of all tasks that precede it.
        since: When it was first seen running; None if it is not running, or if that is unknown.
        component: The name of the component that it belongs to, if any.
        objects: The objects that reveal its state.
    """

    name: str
    flow: str
    state: State
    why: str = ""
    waits: tuple[Wait, ...] = ()
    after: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    since: datetime | None = None
    component: str = ""
    objects: tuple[Identity, ...] = ()


class Operation(NamedTuple):
    """`status.lastOperation` of a Garden; with empty texts before the first operation."""

    type: str = ""
    state: str = ""
    progress: int = 0
    description: str = ""
    updated: datetime | None = None


NO_OPERATION: Final = Operation()


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A Garden at one moment.

    Attributes:
        at: The time of the picture.
        exists: Whether the Garden still exists.
        is_over: Whether its last operation has ended, and no other one is due.
        note: Why no operation begins, if that is the case; else empty.
        tasks: The tasks of all flows of the operation, in order of their dependencies.
        errors: `status.lastErrors`.
        conditions: The four conditions of the Garden's health, in their usual order.
    """

    garden: str
    at: datetime
    exists: bool = True
    is_over: bool = False
    note: str = ""
    operation: Operation = NO_OPERATION
    tasks: tuple[Task, ...] = ()
    errors: tuple[JsonObject, ...] = ()
    conditions: tuple[JsonObject, ...] = ()

    @property
    def flows(self) -> tuple[str, ...]:
        """The names of the flows, in order."""
        return tuple(dict.fromkeys(task.flow for task in self.tasks))

    @property
    def has_failed(self) -> bool:
        """Whether the last operation ended without success."""
        return self.operation.state not in ("", "Pending", "Processing", "Succeeded")

    def of(self, *states: State, flow: str = "") -> Iterator[Task]:
        """Yield the tasks in these states, of all flows or of one."""
        for task in self.tasks:
            if task.state in states and flow in ("", task.flow):
                yield task

    def is_news(self, last: "Picture") -> bool:
        """Return whether anything but the time differs from an earlier picture."""
        return replace(self, at=last.at) != last
