"""Why a Garden is as it is, and which of its components requires an object."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import Identity, JsonObject, map_at, maps_at
from pergola.health.conditions import failing, failing_since
from pergola.health.numbers import generation_problem
from pergola.health.times import read_time
from pergola.operator.reconcile.picture import Picture, Task
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.reading import Reader


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the last operation of a Garden, its errors, and the problems with its health."""
    del reader
    statements = (*_operation(asked.obj), *_errors(asked.obj), *_conditions(asked.obj))
    topics = {each.topic for each in statements}
    sentence = "is reconciled and healthy"
    if Topic.PROBLEM in topics:
        sentence = "is not as it should be"
    elif Topic.WAITS in topics:
        sentence = "is not reconciled yet"
    return Part(
        sentence=sentence,
        statements=statements,
        next_steps=(_STATUS,) if Topic.PROBLEM in topics else (),
    )


_RUNBOOK: Final = (
    "read what to do about {}: docs/how-to/operating-pergola.md#pergolaconditionfailing"
)
_FAILED: Final = ("Error", "Failed", "Aborted")
_STATUS: Final = "see the tasks: pergola garden status; explain one: pergola garden why TASK"


def _operation(garden: JsonObject) -> Iterator[Statement]:
    last = map_at(garden, "status", "lastOperation")
    if not last:
        text = "an operator, which has not picked it up yet"
        yield Statement(topic=Topic.WAITS, text=text, advice="check that an operator runs")
        return
    state, description = last.get("state"), str(last.get("description") or "").rstrip(".")
    operation, since = f"operation {last.get('type')}", read_time(last.get("lastUpdateTime"))
    text = f"{state}, {last.get('progress')} %: {description}"
    if state in _FAILED:
        yield Statement(topic=Topic.PROBLEM, subject=operation, text=text, since=since)
        return
    topic = Topic.DECIDED if state == "Succeeded" else Topic.WAITS
    yield Statement(topic=topic, text=f"{operation}, {text}", since=since)
    if state == "Succeeded" and generation_problem(garden):
        text = "an operator, which has not picked up the last change yet"
        yield Statement(topic=Topic.WAITS, text=text, advice="check that an operator runs")


def _errors(garden: JsonObject) -> Iterator[Statement]:
    for error in maps_at(garden, "status", "lastErrors"):
        codes = ", ".join(str(code) for code in error.get("codes") or ())
        yield Statement(
            topic=Topic.PROBLEM,
            subject=f'task "{error.get("taskID")}"' if error.get("taskID") else "",
            text=f"{error.get('description')}" + (f" ({codes})" if codes else ""),
            since=read_time(error.get("lastUpdateTime")),
        )


def _conditions(garden: JsonObject) -> Iterator[Statement]:
    for condition in failing(garden):
        yield Statement(
            topic=Topic.PROBLEM,
            subject=f"condition {condition.get('type')}",
            text=f"{condition.get('status')} ({condition.get('reason')}): "
            f"{condition.get('message')}",
            since=failing_since(condition),
            advice=_RUNBOOK.format(condition.get("type")),
        )


def _of_component(found: Task, picture: Picture) -> Statement:
    whose = f"component {found.component}" if found.component else f'task "{found.name}"'
    return Statement(
        topic=Topic.WANTED,
        subject=whose,
        text=f"of Garden {picture.garden}, which the operator deploys"
        + (f' in task "{found.name}"' if found.component else ""),
    )


def component_of(asked: Asked, picture: Picture) -> tuple[Statement, ...]:
    """Return the Garden's component or task that deploys an object, if any."""
    identity = Identity(asked.gvk, asked.key)
    owners = [task for task in picture.tasks if identity in task.objects]
    return (_of_component(owners[0], picture),) if owners else ()
