"""Facts that every object has: who requires it, who wrote to it, and what blocks its deletion."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_managers import writers
from pergola.api.marks import ORIGIN
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    namespace_of,
    owner_references_of,
    uid_of,
)
from pergola.health.times import read_time
from pergola.why.answer import Asked, Evidence, Kind, Part, Statement, Topic
from pergola.why.finalizers import finalizer_statements
from pergola.why.reading import Reader

_GENERATIONS: Final = 6
_WRITERS: Final = 2


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return owners, writers and finalizers, and the last Event of an object with problems."""
    return Part(
        statements=(
            *await desired(asked.obj, reader),
            *finalizer_statements(asked.obj),
            *await _deletion(asked, reader),
            *_written(asked.obj),
        )
    )


async def desired(
    obj: JsonObject, reader: Reader, generations: int = _GENERATIONS
) -> tuple[Statement, ...]:
    """Return who requires an object: its ManagedResource and its owners, with theirs below."""
    found = [await _managed_by(obj, reader)]
    if generations:
        found += [
            await _owner(obj, reference, reader, generations - 1)
            for reference in owner_references_of(obj)
        ]
    return tuple(each for each in found if each is not None)


async def _managed_by(obj: JsonObject, reader: Reader) -> Statement | None:
    if ORIGIN not in annotations_of(obj):
        return None
    # It decodes as the resource manager does, whose modules most objects do not need.
    from pergola.why.manifests import managed_by

    return await managed_by(obj, reader)


async def _owner(
    obj: JsonObject, reference: JsonObject, reader: Reader, generations: int
) -> Statement:
    gvk = GroupVersionKind.of(reference)
    name = str(reference.get("name") or "")
    # An owner is cluster-scoped, or in the same namespace as its dependents.
    key = Key(namespace_of(obj), name)
    owner = await reader.find(gvk, key)
    role = "its controller" if reference.get("controller") is True else "one of its owners"
    subject = f"{gvk.kind} {Key.of(owner) if owner else key}"
    if owner is not None and uid_of(owner) == reference.get("uid"):
        below = await desired(owner, reader, generations)
        return Statement(topic=Topic.WANTED, subject=subject, text=role, below=below)
    if owner is None and not await reader.is_missing(gvk, key):
        return Statement(topic=Topic.WANTED, subject=subject, text=role)
    return Statement(
        topic=Topic.WANTED,
        subject=subject,
        text=(
            f"{role}, which no longer exists: the garbage collector deletes the object if it has "
            "no other owner"
        ),
    )


async def _deletion(asked: Asked, reader: Reader) -> tuple[Statement, ...]:
    """Return that an object without finalizers is being deleted, and its last Event."""
    deleted = deletion_timestamp_of(asked.obj)
    if deleted is None:
        return ()
    event = await reader.event(asked.obj)
    evidence = (Evidence(Kind.EVENT, event),) if event else ()
    if finalizers_of(asked.obj) and not event:
        return ()
    text = "its grace period, or the API server" if not finalizers_of(asked.obj) else ""
    return (
        Statement(
            topic=Topic.BLOCKED,
            text=text or "the removal of its finalizers",
            since=read_time(deleted),
            evidence=evidence,
        ),
    )


def _written(obj: JsonObject) -> Iterator[Statement]:
    named: set[str] = set()
    for entry, time in writers(obj):
        name = entry.removesuffix("/status")
        if name not in named and len(named) < _WRITERS:
            named.add(name)
            yield Statement(topic=Topic.WRITTEN, subject=name, since=read_time(time))
