"""Changes of a Garden as lines, for logs and pipes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.operator.reconcile.picture import Operation, Picture, Task


def changes(before: "Picture", after: "Picture") -> Iterator[str]:
    """Yield a line for each change between two pictures, with the time."""
    time = f"{after.at:%H:%M:%S}"
    for line in _changes(before, after):
        yield f"{time} {line}"


def _changes(before: "Picture", after: "Picture") -> Iterator[str]:
    if not after.exists:
        yield f"Garden {after.garden} is gone"
        return
    earlier = {task.name: named(task) for task in before.tasks}
    for task in after.tasks:
        line = named(task)
        if line != earlier.get(task.name):
            yield line
    if _shown(before.operation) != _shown(after.operation):
        yield operation(after.operation)


def named(task: "Task") -> str:
    """Return a task's state and name, with the reason or the first object it waits for."""
    text = f"{task.state.value} {task.name}"
    if task.why:
        return f"{text}: {task.why}"
    if not task.waits:
        return text
    first, *others = task.waits
    more = f", and {len(others)} more" if others else ""
    return f"{text} ({first.subject}: {first.problem}{more})"


def operation(last: "Operation") -> str:
    """Return an operation as one sentence, without its description."""
    if not last.type:
        return "no operation has begun"
    return f"{last.type} {last.state}, {last.progress} %"


def _shown(last: "Operation") -> tuple[str, str, int]:
    return last.type, last.state, last.progress // 10
