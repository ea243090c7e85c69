"""The comparison of a managed object with its manifest, using the functions of a run."""

from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api import marks
from pergola.api.managed_resource_status import applied_problem
from pergola.api.objects import (
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
)
from pergola.kube.equality.defaults import shape_of
from pergola.kube.equality.differences import Difference, differences
from pergola.kube.transport import USER_AGENT
from pergola.resource_manager.controllers.managed_resource.compare import needs_update
from pergola.resource_manager.controllers.managed_resource.decode import Decoded
from pergola.resource_manager.controllers.managed_resource.errors import ManifestError
from pergola.resource_manager.controllers.managed_resource.merge import MergeOptions, merge
from pergola.resource_manager.controllers.managed_resource.references import (
    Equivalences,
    object_key,
    object_key_of,
)
from pergola.resource_manager.controllers.managed_resource.scaled import scaled_objects
from pergola.resource_manager.target.autoscalers import HPA
from pergola.why.answer import Asked, Evidence, Kind, Statement, Topic
from pergola.why.reading import Reader

_SHOWN: Final = 5
_SERVERS: Final = ("metadata.managedFields", "metadata.generation", "metadata.resourceVersion")


async def comparison(
    asked: Asked, resource: JsonObject, decoded: Decoded, manifest: JsonObject, reader: Reader
) -> Statement:
    """Return whether the live object is as a run would leave it; if not, what delays that."""
    try:
        merged = merge(
            manifest,
            asked.obj,
            previous=_previous(resource, asked),
            options=await _options(resource, asked, reader),
        )
    except ManifestError as error:
        return Statement(
            topic=Topic.WAITS, text="a manifest that can be applied", because=str(error)
        )
    if not needs_update(asked.obj, merged):
        return Statement(
            topic=Topic.DECIDED, text="it matches its manifest, so the next run writes nothing"
        )
    found = _differing(asked, merged)
    fields = tuple(Evidence(Kind.FIELD, each.path) for each in found[:_SHOWN])
    if _is_settled(resource, decoded) and not _edited(asked.obj, found):
        return Statement(
            topic=Topic.DECIDED,
            text="it is as the API server stored it when the resource manager wrote its manifest",
            because="webhooks or defaults changed the fields below, which stay like that",
            evidence=fields,
        )
    return Statement(
        topic=Topic.WAITS,
        text="the next run of the resource manager, which writes what differs from its manifest",
        because=_holdup(resource),
        evidence=fields,
    )


def _differing(asked: Asked, merged: JsonObject) -> list[Difference]:
    shape = shape_of(asked.gvk.group_kind)
    found = differences(_without_status(asked.obj), _without_status(merged), shape)
    return [each for each in found if not each.path.startswith(_SERVERS)]


def _is_settled(resource: JsonObject, decoded: Decoded) -> bool:
    """Return whether the last run applied the current Secrets, and nothing blocks the next."""
    applied = map_at(resource, "status").get("secretsDataChecksum")
    return not _holdup(resource) and applied == decoded.checksum


def _edited(obj: JsonObject, found: Sequence[Difference]) -> bool:
    """Return whether someone else may have written a field: a removed one has no writer."""
    others = [*_written_by_others(obj)]
    return any(each.one is None or _overlaps(each.path, others) for each in found)


def _written_by_others(obj: JsonObject) -> Iterator[str]:
    for entry in maps_at(obj, "metadata", "managedFields"):
        if entry.get("manager") != USER_AGENT and not entry.get("subresource"):
            yield from _paths(map_at(entry, "fieldsV1"))


def _paths(fields: JsonObject, path: str = "") -> Iterator[str]:
    """Yield the paths of owned fields, each up to its first list of objects."""
    names = [name for name in fields if name.startswith("f:")]
    if path and not names:
        yield path
    for name in names:
        value = fields[name]
        below = f"{path}.{name.removeprefix('f:')}".lstrip(".")
        yield from _paths(value if isinstance(value, dict) else {}, below)


def _overlaps(path: str, others: Sequence[str]) -> bool:
    before = path.partition("[")[0]
    return any(
        f"{each}.".startswith(f"{before}.") or f"{before}.".startswith(f"{each}.")
        for each in others
    )


def _holdup(resource: JsonObject) -> str:
    """Return why the resource manager has not written yet."""
    if marks.is_truthy(annotations_of(resource).get(marks.IGNORE)):
        return f"annotation {marks.IGNORE} of the ManagedResource is set: it is not reconciled"
    if deletion_timestamp_of(resource) is not None:
        return "the ManagedResource is being deleted"
    return applied_problem(resource) or ""


def _previous(resource: JsonObject, asked: Asked) -> JsonObject | None:
    desired = object_key_of(asked.gvk, asked.key)
    listed = maps_at(resource, "status", "resources")
    return next((ref for ref in listed if object_key(ref) == desired), None)


async def _options(resource: JsonObject, asked: Asked, reader: Reader) -> MergeOptions:
    spec = map_at(resource, "spec")
    # The value of this label is configurable; only the running resource manager knows it.
    managed = {marks.MANAGED_BY: labels_of(asked.obj).get(marks.MANAGED_BY, "gardener")}
    autoscalers = await reader.listed(HPA, asked.key.namespace) if asked.key.namespace else []
    return MergeOptions(
        origin=annotations_of(asked.obj)[marks.ORIGIN],
        labels={**map_at(resource, "spec", "injectLabels"), **managed},
        force_labels=bool(spec.get("forceOverwriteLabels")),
        force_annotations=bool(spec.get("forceOverwriteAnnotations")),
        scaled=scaled_objects(autoscalers, Equivalences.of(spec)),
    )


def _without_status(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name != "status"}
