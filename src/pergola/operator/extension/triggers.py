"""The triggers of the controllers of Extensions: events, and the objects that they affect."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    generation_of,
    map_at,
    maps_at,
)
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.operator_v1alpha1.extension import REQUIRED_RUNTIME, REQUIRED_VIRTUAL
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.landscape import NAMESPACE
from pergola.operator.conditions import condition_of
from pergola.operator.copies import Copies
from pergola.operator.extension.garden_facts import GardenFacts
from pergola.operator.extension.installations import Installations
from pergola.operator.extension.names import (
    POD_SECURITY,
    admission_runtime_resource,
    admission_virtual_resource,
    registration_resource,
    runtime_resource,
)
from pergola.operator.extension.references import references_of
from pergola.operator.reconcile.named_objects import content_of
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.view import View
from pergola.runtime.controlling.watches import Watch, all_of, changed, exists, gone, later

_RESOURCES: Final = (
    runtime_resource,
    admission_runtime_resource,
    admission_virtual_resource,
    registration_resource,
)


class Facts(NamedTuple):
    """The facts about an Extension that trigger controllers.

    Attributes:
        required_runtime, required_virtual: The status of the condition; empty without one.
        named: The Secrets and ConfigMaps that it names.
    """

    generation: int
    is_deleted: bool
    pod_security: str
    required_runtime: str
    required_virtual: str
    named: frozenset[tuple[str, Key]]

    @classmethod
    def of(cls, extension: JsonObject) -> "Facts":
        """Return these facts about an Extension."""
        return cls(
            generation=generation_of(extension),
            is_deleted=deletion_timestamp_of(extension) is not None,
            pod_security=annotations_of(extension).get(POD_SECURITY, ""),
            required_runtime=str(condition_of(extension, REQUIRED_RUNTIME).get("status") or ""),
            required_virtual=str(condition_of(extension, REQUIRED_VIRTUAL).get("status") or ""),
            named=frozenset(each.identity for each in references_of(extension)),
        )


Extensions = View[Facts]


def of_installation(copies: Copies) -> Iterator[Watch[Any, Key]]:
    """Yield the triggers for installing or removing an Extension."""
    extensions = View(copies.of(EXTENSION), Facts.of)
    yield Watch(extensions, when=all_of(exists, _changed_apart_from("required_virtual")))
    yield Watch(
        View(copies.of(GARDEN), GardenFacts.of),
        to=partial(_all, extensions),
        when=_concerns_extensions,
    )
    for gvk in (SECRET, CONFIG_MAP):
        yield Watch(
            View(copies.of(gvk, NAMESPACE), content_of),
            to=partial(_naming, extensions, gvk.kind),
            when=all_of(later, changed),
        )
    yield Watch(
        View(copies.of(MANAGED_RESOURCE, NAMESPACE), _exists),
        to=partial(_owning, extensions),
        when=gone,
    )


def of_requirement(copies: Copies, types: Iterable[Cache[str]]) -> Iterator[Watch[Any, Key]]:
    """Yield the events that may change whether the runtime cluster requires an Extension.

    Args:
        types: The extension resources of the garden, with one cache per kind.
    """
    extensions = View(copies.of(EXTENSION), Facts.of)
    unrelated = _changed_apart_from("required_runtime", "required_virtual", "pod_security")
    # The Garden also requires Extensions that a newly added one depends on.
    yield Watch(extensions, to=partial(_all, extensions), when=unrelated)
    to_all = partial(_all, extensions)
    yield Watch(View(copies.of(GARDEN), _requirements), to=to_all, when=changed)
    for cache in types:
        yield Watch(cache, to=to_all, when=changed)


def of_installations(copies: Copies, installations: Installations) -> Iterator[Watch[Any, Key]]:
    """Yield the events that may change whether Seeds require an Extension."""
    extensions = View(copies.of(EXTENSION), Facts.of)
    yield Watch(extensions, when=_is_new)
    yield Watch(installations.changed, to=partial(_named, extensions))


def of_care(copies: Copies, installations: Installations) -> Iterator[Watch[Any, Key]]:
    """Yield the events that may change the health of an Extension."""
    extensions = View(copies.of(EXTENSION), Facts.of)
    yield Watch(extensions, when=all_of(exists, changed))
    yield Watch(installations.changed, to=partial(_named, extensions))
    yield Watch(
        View(copies.of(MANAGED_RESOURCE, NAMESPACE), _signal),
        to=partial(_owning, extensions),
        when=all_of(later, changed),
    )


def _changed_apart_from(*fields: str) -> Callable[[Change[Facts]], bool]:
    """Return a predicate that accepts changes of all but some facts."""
    same: dict[str, Any] = dict.fromkeys(fields, "")

    def matters(change: Change[Facts]) -> bool:
        old, new = change.old, change.new
        if old is None or new is None:
            return True
        return old._replace(**same) != new._replace(**same)

    return matters


def _is_new(change: Change[Facts]) -> bool:
    return change.old is None


def _exists(_: JsonObject) -> bool:
    """Keep only the existence of an object."""
    return True


def _concerns_extensions(change: Change[GardenFacts]) -> bool:
    """Return whether a Garden appeared, disappeared, was reconciled, or is being deleted."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    if new.is_reconciled and not old.is_reconciled:
        return True
    return old._replace(is_reconciled=new.is_reconciled) != new


def _requirements(garden: JsonObject) -> tuple[object, ...]:
    """Return the parts of a Garden that determine its required Extensions."""
    return generation_of(garden), deletion_timestamp_of(garden) is not None


def _signal(resource: JsonObject) -> tuple[object, ...]:
    """Return the reported state of a ManagedResource's objects."""
    conditions = (
        (each.get("type"), each.get("status"), each.get("reason"), each.get("message"))
        for each in maps_at(resource, "status", "conditions")
    )
    observed = map_at(resource, "status").get("observedGeneration")
    return generation_of(resource), observed, *sorted(map(str, conditions))


def _all(extensions: Extensions, _: object) -> list[Key]:
    return [key for key, _ in extensions.items()]


def _named(extensions: Extensions, name: str) -> list[Key]:
    return [key for key, _ in extensions.items() if name in ("", key.name)]


def _naming(extensions: Extensions, kind: str, change: Change[Any]) -> list[Key]:
    identity = (kind, change.key)
    return [key for key, facts in extensions.items() if identity in facts.named]


def _owning(extensions: Extensions, change: Change[Any]) -> list[Key]:
    return [
        key
        for key, _ in extensions.items()
        if any(resource(key.name) == change.key for resource in _RESOURCES)
    ]
