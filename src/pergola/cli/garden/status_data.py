"""Pictures of a Garden for programs: JSON, one object a line, or YAML documents."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING

import orjson

from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.operator.reconcile.picture import Picture, Task


async def print_data(pictures: "AsyncIterator[Picture]", output: str) -> "Picture":
    """Print pictures until there are no more, and return the last one."""
    last = await anext(pictures)
    _print(last, output)
    async for last in pictures:
        _print(last, output)
    return last


def data(picture: "Picture") -> "JsonObject":
    """Return a picture as JSON."""
    last = picture.operation
    return {
        "garden": picture.garden,
        "time": _time(picture.at),
        "exists": picture.exists,
        "isOver": picture.is_over,
        "note": picture.note,
        "lastOperation": {
            "type": last.type,
            "state": last.state,
            "progress": last.progress,
            "description": last.description,
            "lastUpdateTime": _time(last.updated),
        },
        "lastErrors": [*picture.errors],
        "conditions": [*picture.conditions],
        "tasks": [_task(task) for task in picture.tasks],
    }


def _task(task: "Task") -> "JsonObject":
    return {
        "name": task.name,
        "flow": task.flow,
        "component": task.component,
        "state": task.state.value,
        "why": task.why,
        "since": _time(task.since),
        "after": [*task.after],
        "waitsFor": [
            {
                "object": wait.subject,
                "problem": wait.problem,
                "since": _time(wait.since),
                "exists": wait.exists,
            }
            for wait in task.waits
        ],
    }


def _time(time: datetime | None) -> str | None:
    from pergola.api.conditions import timestamp

    return None if time is None else timestamp(time)


def _print(picture: "Picture", output: str) -> None:
    if output == "json":
        say(orjson.dumps(data(picture)).decode(), flush=True)
    else:
        from pergola.kube.yaml_writer import dump

        say(f"---\n{dump(data(picture))}", end="", flush=True)
