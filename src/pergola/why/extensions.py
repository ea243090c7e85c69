"""Why an extension resource is as it is: its caller, its extension, and the last operation.

Uses the functions of the extension contract with which callers wait.
"""

from collections.abc import Iterator

from pergola.api import marks
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    map_at,
)
from pergola.extension_api.caller import explainer, readiness
from pergola.extension_api.caller.readiness import deletion, is_pending
from pergola.extension_api.cluster import CLUSTER
from pergola.extension_api.errors import Code
from pergola.extension_api.predicates import Snapshot, snapshot
from pergola.health.times import read_time
from pergola.runtime.clock import SystemClock
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.code_advice import advice_for
from pergola.why.reading import Reader


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return whether an extension has picked up the object, and how far it has got."""
    seen = snapshot(asked.obj)
    is_deleting = deletion_timestamp_of(asked.obj) is not None
    verdict = deletion(asked.obj) if is_deleting else readiness(asked.obj)
    statements = [*await _desired(asked, reader), *_decided(asked.obj, seen)]
    if verdict.problem:
        statements.append(await _wait(asked, reader, seen, verdict.problem, verdict.codes))
    return Part(
        sentence="is not ready" if verdict.problem else "is ready", statements=tuple(statements)
    )


async def _desired(asked: Asked, reader: Reader) -> list[Statement]:
    """Return the Cluster of a Shoot's extension resource."""
    namespace = asked.key.namespace
    if not namespace or await reader.find(CLUSTER, Key("", namespace), metadata_only=True) is None:
        return []
    return [
        Statement(
            topic=Topic.WANTED,
            subject=f"Cluster {namespace}",
            text="whose Shoot has its extension resources in this namespace",
        )
    ]


def _decided(obj: JsonObject, seen: Snapshot) -> Iterator[Statement]:
    yield Statement(
        topic=Topic.DECIDED,
        text=f"extensions for type {seen.type} and class {seen.extension_class} serve it",
    )
    if seen.request.is_trigger:
        yield Statement(
            topic=Topic.DECIDED,
            text=f"its caller has requested the operation {seen.request.operation}",
            because=f"annotation {marks.OPERATION} is set",
            since=read_time(seen.request.timestamp),
        )
    operation = map_at(obj, "status", "lastOperation")
    if operation:
        text = f"{operation.get('type')} {operation.get('state')}, {operation.get('progress')} %"
        description = str(operation.get("description") or "").rstrip(".")
        yield Statement(
            topic=Topic.DECIDED,
            text=f"last operation: {text}" + (f": {description}" if description else ""),
            since=read_time(operation.get("lastUpdateTime")),
        )


async def _wait(
    asked: Asked, reader: Reader, seen: Snapshot, problem: str, codes: tuple[Code, ...]
) -> Statement:
    """Return why the object is not ready: an error of the extension, or what it waits for."""
    symptom = await explainer(reader.client, SystemClock())(asked.obj)
    failed = bool(map_at(asked.obj, "status").get("lastError"))
    advice = advice_for(codes)
    if not advice and marks.OPERATION in annotations_of(asked.obj):
        advice = f"check that an extension for type {seen.type} is installed and runs"
    topic = Topic.PROBLEM if failed else Topic.WAITS
    text = problem if failed else f"its extension: {problem}"
    if is_pending(asked.obj) and not failed:
        text = "an extension that picks up the requested operation"
    if codes:
        text += f" ({', '.join(codes)})"
    if deletion_timestamp_of(asked.obj) is not None and not failed:
        topic, text = Topic.BLOCKED, f"its extension: {problem}"
    return Statement(topic=topic, text=text, because=symptom, advice=advice)
