"""Triggers of the ManagedResource controller (spec 10 §4.1), as pure functions.

A ManagedResource is reconciled after a change to itself, to a Secret that it names, to an object
that it manages, or to an autoscaler of such an object. The periodic run is a safety net.
"""

from collections.abc import Callable, Iterator

from pergola.api import marks
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.resource_manager.controllers.managed_resource.references import (
    Equivalences,
    object_key_of,
)
from pergola.resource_manager.controllers.managed_resource.scaled import (
    ScaleTargetError,
    scaled_objects,
)
from pergola.resource_manager.origin import parse_origin
from pergola.resource_manager.responsibility import Responsibility
from pergola.resource_manager.source import SeenResource, SeenSecret, Source
from pergola.resource_manager.target import Target, TargetChange
from pergola.runtime.caching.cache import Change

_OPERATIONS = frozenset({marks.OPERATION_RESTORE, marks.OPERATION_MIGRATE})


def resource_triggers(change: Change[SeenResource], mine: Responsibility) -> bool:
    """Return whether a change of a ManagedResource requires a run."""
    old, new = change.old, change.new
    if new is None:
        return True  # a run drops its cached state
    if not mine.concerns(new.resource_class, new.finalizers):
        return False
    if old is None or old.uid != new.uid:
        return True
    return _matters(old, new, mine) and _may_run(old, new)


def _matters(old: SeenResource, new: SeenResource, mine: Responsibility) -> bool:
    waited = mine.must_wait(old.resource_class, old.finalizers)
    return (
        old.generation != new.generation
        or new.operation == marks.OPERATION_RECONCILE
        or (new.operation in _OPERATIONS and new.operation != old.operation)
        or (old.operation == marks.OPERATION_WAIT_FOR_STATE and new.operation != old.operation)
        or (old.healthy in (None, "True") and new.healthy == "False")
        or old.ignored != new.ignored
        or (waited and not mine.must_wait(new.resource_class, new.finalizers))
    )


def _may_run(old: SeenResource, new: SeenResource) -> bool:
    return not new.ignored or not old.ignored or new.deleting


def secret_triggers(change: Change[SeenSecret], source: Source) -> Iterator[Key]:
    """Yield the ManagedResources to reconcile because a Secret appeared or changed.

    The initial list triggers nothing: every ManagedResource is reconciled then anyway.
    """
    if change.initial or change.new is None:
        return
    if change.old is not None and change.old.version == change.new.version:
        return
    for key in list(source.readers(change.key)):
        seen = source.resource(key)
        if seen is None or (seen.ignored and not seen.deleting):
            continue
        if source.responsibility.concerns(seen.resource_class, seen.finalizers):
            yield key


def owners(event: TargetChange, cluster_id: str) -> Iterator[Key]:
    """Yield the ManagedResources in an object's origin annotation, before and after a change."""
    old, new = event.change.old, event.change.new
    for text in {seen.origin for seen in (old, new) if seen is not None and seen.origin}:
        origin = parse_origin(text)
        if origin is not None and origin.cluster_id == cluster_id:
            yield Key(origin.namespace, origin.name)


def describers(event: TargetChange, target: Target) -> Iterator[Key]:
    """Yield the ManagedResources that describe a changed object, even if another applied it."""
    yield from target.describers.of(object_key_of(event.gvk, event.change.key))


def scaling(change: Change[JsonObject], target: Target) -> Iterator[Key]:
    """Yield the ManagedResources that describe what a changed autoscaler scales, or did before."""
    autoscalers = [each for each in (change.old, change.new) if each is not None]
    try:
        scaled = scaled_objects(autoscalers, Equivalences.of({}))
    except ScaleTargetError:
        return  # a run reports it
    for group, kind, namespace, name in scaled:
        key = object_key_of(GroupVersionKind(group, "", kind), Key(namespace, name))
        yield from target.describers.of(key)


def drifted(
    event: TargetChange, is_expected: Callable[[GroupVersionKind, Key, bytes], bool]
) -> bool:
    """Return whether the event shows an object in a state that this process did not leave.

    Args:
        is_expected: whether an object with this digest is known to be right.
    """
    old, new = event.change.old, event.change.new
    if new is None:
        return True
    if old is not None and old.digest == new.digest and old.uid == new.uid:
        return False
    return not is_expected(event.gvk, event.change.key, new.digest)
