"""Why a Machine is as it is: its phase, class, instance and node, and what the cloud said."""

from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import MACHINE_DEPLOYMENT
from pergola.api.objects import (
    JsonObject,
    deletion_timestamp_of,
    labels_of,
    map_at,
)
from pergola.health.times import read_time
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.reading import Reader
from pergola.why.workers.controller import controller_problem
from pergola.why.workers.observed import NODE_LABEL, class_statements, deployment_of, of_worker
from pergola.why.workers.words import said

RUNNING: Final = "Running"
_WAITING: Final = ("", "Pending", "Available", "InPlaceUpdating", "InPlaceUpdateSuccessful")
_FORCE: Final = "force-deletion"
_DRAIN: Final = (
    "see which pods it cannot evict, and their PodDisruptionBudgets; to delete the machine without "
    "draining its node: kubectl label machine {name} -n {namespace} force-deletion=True"
)


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return how far a Machine has got, and why not further."""
    obj, namespace = asked.obj, asked.key.namespace
    phase = phase_of(obj)
    statements: list[Statement] = []
    deployment = deployment_of(obj)
    if deployment.name and (found := await reader.find(MACHINE_DEPLOYMENT, deployment)):
        statements += await of_worker(reader, found)
    statements += await class_statements(reader, obj)
    statements += _decided(obj)
    is_deleting = deletion_timestamp_of(obj) is not None
    if is_deleting:
        statements += _deletion(asked)
    elif phase != RUNNING:
        statements.append(state_of(obj))
    if (is_deleting or phase != RUNNING) and (
        problem := await controller_problem(reader, namespace)
    ):
        statements.append(problem)
    return Part(
        sentence="runs" if phase == RUNNING else "does not run", statements=tuple(statements)
    )


def phase_of(machine: JsonObject) -> str:
    """Return the phase of a Machine; empty before the first one."""
    return str(map_at(machine, "status", "currentStatus").get("phase") or "")


def state_of(machine: JsonObject, subject: str = "") -> Statement:
    """Return why a Machine does not run, with the last words of the cloud."""
    phase = phase_of(machine)
    last = map_at(machine, "status", "lastOperation")
    failed = phase not in _WAITING or last.get("state") == "Failed"
    what = f"phase {phase}" if phase else "no phase yet: machine-controller-manager has not seen it"
    words = str(last.get("description") or "")
    since = map_at(machine, "status", "currentStatus").get("lastUpdateTime")
    return said(
        f"{what}: {words}" if words else what,
        subject=subject,
        topic=Topic.PROBLEM if failed else Topic.WAITS,
        since=since,
    )


def _decided(machine: JsonObject) -> Iterator[Statement]:
    instance = str(map_at(machine, "spec").get("providerID") or "")
    node = labels_of(machine).get(NODE_LABEL) or str(map_at(machine, "status").get("node") or "")
    text = f"its instance is {instance}" if instance else "it has no instance yet"
    text += f", and its node {node}" if node else ", and no node has joined"
    yield Statement(topic=Topic.DECIDED, text=text)


def _deletion(asked: Asked) -> Iterator[Statement]:
    """Yield how far the deletion has got: draining, the instance, the node."""
    last = map_at(asked.obj, "status", "lastOperation")
    words = str(last.get("description") or "")
    if not words:
        return
    found = said(words, topic=Topic.BLOCKED, since=last.get("lastUpdateTime"))
    timeout = map_at(asked.obj, "spec").get("drainTimeout")
    is_draining = "drain" in words.lower() and labels_of(asked.obj).get(_FORCE) != "True"
    yield Statement(
        topic=Topic.BLOCKED,
        subject=f"the last operation, {last.get('type')} {last.get('state')}",
        text=found.text,
        because=f"its node is drained for at most {timeout}" if is_draining and timeout else "",
        since=read_time(last.get("lastUpdateTime")),
        advice=found.advice
        or (
            _DRAIN.format(name=asked.key.name, namespace=asked.key.namespace) if is_draining else ""
        ),
    )
