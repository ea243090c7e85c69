"""Why a ManagedResource is as it is: its instance, its Secrets, and its objects."""

from collections.abc import Collection, Iterator
from typing import Final

from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    map_at,
    maps_at,
)
from pergola.api.texts import counted
from pergola.resource_manager.controllers.managed_resource.references import (
    object_key,
    object_key_of,
    reference_key,
    reference_kind,
)
from pergola.resource_manager.responsibility import DEFAULT_CLASS, Responsibility
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.managed_resource_problems import (
    conditions,
    deletion,
    lost_secrets,
    remarks,
    unhealthy_objects,
)
from pergola.why.manifests import Content, content_of
from pergola.why.reading import Reader

_SHOWN: Final = 3


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the resource manager's decisions about a ManagedResource, and what it waits for."""
    content = await content_of(asked.obj, reader, reader.target)
    problems = [*conditions(asked.obj), *remarks(asked.obj)]
    return Part(
        sentence=_sentence(asked.obj, problems),
        statements=(
            *_instance(asked.obj),
            *_plan(asked.obj, content),
            *problems,
            *lost_secrets(content),
            *[each async for each in unhealthy_objects(asked.obj, reader.target)],
            *deletion(asked.obj),
        ),
    )


def _sentence(resource: JsonObject, problems: list[Statement]) -> str:
    if marks.is_truthy(annotations_of(resource).get(marks.IGNORE)):
        return "is ignored"
    return "" if problems else "is applied, healthy and rolled out"


def _instance(resource: JsonObject) -> Iterator[Statement]:
    """Yield the responsible instance, and why it does nothing if that is the case."""
    resource_class = map_at(resource, "spec").get("class")
    mine = Responsibility(resource_class or DEFAULT_CLASS)
    finalizers = finalizers_of(resource)
    if marks.is_truthy(annotations_of(resource).get(marks.IGNORE)):
        because = f"annotation {marks.IGNORE} is set"
        yield Statement(topic=Topic.DECIDED, text="it is not reconciled", because=because)
    elif mine.must_wait(resource_class, finalizers):
        text = "the former instance, which must remove its finalizer first"
        yield Statement(topic=Topic.WAITS, text=text, because="spec.class has changed")
    elif mine.finalizer in finalizers:
        yield Statement(
            topic=Topic.DECIDED,
            text=f"the resource manager of class {mine.resource_class} has picked it up",
        )
    elif deletion_timestamp_of(resource) is None:
        yield Statement(
            topic=Topic.WAITS,
            text=f"a resource manager of class {mine.resource_class}: none has picked it up yet",
            advice=f"check that a resource manager of class {mine.resource_class} runs",
        )
    if (operation := annotations_of(resource).get(marks.OPERATION)) is not None:
        because = f"annotation {marks.OPERATION} is {operation}"
        if operation == marks.OPERATION_WAIT_FOR_STATE:
            text = "its state must be restored first"
        else:
            text = "a run was requested but has not started"
        yield Statement(topic=Topic.DECIDED, text=text, because=because)


def _plan(resource: JsonObject, content: Content) -> Iterator[Statement]:
    """Yield the changes from the objects applied before to those in the Secrets."""
    decoded = content.decoded
    for error in decoded.errors[:_SHOWN]:
        yield Statement(
            topic=Topic.PROBLEM, text=error, advice="correct the document that the message names"
        )
    if content.problem:
        return
    planned = {_object_key(obj): _named(obj) for obj in decoded.objects}
    listed = {
        object_key(ref): f"{reference_kind(ref).kind} {reference_key(ref)}"
        for ref in maps_at(resource, "status", "resources")
    }
    secrets = len(maps_at(resource, "spec", "secretRefs"))
    verb = "describes" if secrets == 1 else "describe"
    text = f"{counted(secrets, 'Secret')} {verb} {counted(len(planned), 'object')}"
    below = [*_several("not applied yet", [planned[key] for key in planned.keys() - listed])]
    below += _several("to be deleted", [listed[key] for key in listed.keys() - planned])
    below += _several("left alone (mode Ignore)", {_named(obj) for obj in decoded.released})
    yield Statement(topic=Topic.DECIDED, text=text, below=tuple(below))


def _object_key(obj: JsonObject) -> str:
    return object_key_of(GroupVersionKind.of(obj), Key.of(obj))


def _named(obj: JsonObject) -> str:
    return f"{GroupVersionKind.of(obj).kind} {Key.of(obj)}"


def _several(text: str, objects: Collection[str]) -> Iterator[Statement]:
    names = sorted(objects)
    for name in names[:_SHOWN]:
        yield Statement(topic=Topic.DECIDED, subject=name, text=text)
    if len(names) > _SHOWN:
        yield Statement(topic=Topic.DECIDED, text=f"{len(names) - _SHOWN} more are {text}")
