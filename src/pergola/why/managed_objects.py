"""Why an object of a ManagedResource is as it is: its document, and what the last run decided.

Decides with the functions of the resource manager: it reads the manifest from the Secret, merges it
with the live object, and compares, as a run does.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api import marks
from pergola.api.managed_resource_status import applied_problem
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.equality.defaults import shape_of
from pergola.kube.equality.differences import differences
from pergola.resource_manager.controllers.managed_resource.compare import needs_update
from pergola.resource_manager.controllers.managed_resource.decode import (
    Decoded,
)
from pergola.resource_manager.controllers.managed_resource.errors import ManifestError
from pergola.resource_manager.controllers.managed_resource.merge import MergeOptions, merge
from pergola.resource_manager.controllers.managed_resource.origin import Origin, parse_origin
from pergola.resource_manager.controllers.managed_resource.prune import why_kept
from pergola.resource_manager.controllers.managed_resource.references import (
    Equivalences,
    object_key,
    object_key_of,
)
from pergola.resource_manager.controllers.managed_resource.scaled import scaled_objects
from pergola.resource_manager.target.autoscalers import HPA
from pergola.why.answer import Asked, Evidence, Kind, Part, Statement, Topic
from pergola.why.explainer import Explainer
from pergola.why.manifests import Content, content_of, lists
from pergola.why.reading import Reader

_SHOWN: Final = 5


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return what the resource manager decides about a managed object."""
    origin = parse_origin(annotations_of(asked.obj).get(marks.ORIGIN, ""))
    if origin is None:
        return Part()
    resource = await reader.find(MANAGED_RESOURCE, Key(origin.namespace, origin.name))
    if resource is None:
        return Part(next_steps=(_elsewhere(origin),))
    content = await content_of(resource, reader)
    manifest = _manifest(content.decoded, asked)
    if manifest is None:
        return _without_manifest(asked, resource, content, origin)
    statements = [*_rules(manifest, asked, origin)]
    statement = await _comparison(asked, resource, manifest, origin, reader)
    is_same = statement.topic is not Topic.WAITS
    sentence = "is as its manifest describes it" if is_same else "differs from its manifest"
    return Part(sentence=sentence, statements=(statement, *statements))


def _manifest(decoded: Decoded, asked: Asked) -> JsonObject | None:
    wanted = (asked.gvk.group_kind, asked.key)
    found = (
        obj
        for obj in (*decoded.objects, *decoded.released)
        if (GroupVersionKind.of(obj).group_kind, Key.of(obj)) == wanted
    )
    return next(found, None)


def _elsewhere(origin: Origin) -> str:
    return (
        "explain its ManagedResource with the kubeconfig of the cluster that has it: pergola why "
        f"managedresource/{origin.name} -n {origin.namespace} --kubeconfig FILE"
    )


def _without_manifest(asked: Asked, resource: JsonObject, content: Content, origin: Origin) -> Part:
    """Return what happens to an object that its ManagedResource does not describe (any more)."""
    if content.problem or content.decoded.errors:
        problem = content.problem or content.decoded.errors[0]
        statement = Statement(
            topic=Topic.DECIDED,
            text="it stays as it is, because its manifest cannot be read",
            because=problem,
        )
        return Part(statements=(statement,))
    kept = why_kept(asked.obj, origin, collects_garbage=False)
    if kept:
        text = f"it stays, although its ManagedResource does not describe it any more: {kept}"
    elif lists(resource, asked.gvk, asked.key):
        text = "it is to be deleted: its ManagedResource does not describe it any more"
    else:
        text = "its ManagedResource neither describes nor lists it: it was given up"
    return Part(
        sentence="is not in the Secrets of its ManagedResource",
        statements=(Statement(topic=Topic.DECIDED, text=text),),
    )


def _rules(manifest: JsonObject, asked: Asked, origin: Origin) -> Iterator[Statement]:
    """Yield the annotations of the manifest that change what a run does with the object."""
    annotations = annotations_of(manifest)
    if annotations.get(marks.MODE) == marks.MODE_IGNORE:
        yield _decided("it is left alone", f"annotation {marks.MODE} is {marks.MODE_IGNORE}")
    for name, text in _EFFECTS.items():
        if marks.is_truthy(annotations.get(name)):
            yield _decided(text, f"annotation {name} is set")
    if kept := why_kept(asked.obj, origin, collects_garbage=False):
        yield _decided("it stays when its ManagedResource is deleted", kept)


_EFFECTS: Final = {
    marks.PRESERVE_REPLICAS: "the number of its replicas is kept",
    marks.PRESERVE_RESOURCES: "CPU and memory of its containers are kept",
    marks.DELETE_ON_INVALID_UPDATE: "it is deleted and created again if an update is not valid",
    marks.SKIP_HEALTH_CHECK: "its health does not count",
}


def _decided(text: str, because: str = "") -> Statement:
    return Statement(topic=Topic.DECIDED, text=text, because=because)


async def _comparison(
    asked: Asked, resource: JsonObject, manifest: JsonObject, origin: Origin, reader: Reader
) -> Statement:
    """Return whether the live object is as a run would write it; if not, what holds that up."""
    try:
        merged = merge(
            manifest,
            asked.obj,
            previous=_previous(resource, asked),
            options=await _options(resource, origin, asked, reader),
        )
    except ManifestError as error:
        return Statement(
            topic=Topic.WAITS, text="a manifest that can be applied", because=str(error)
        )
    if not needs_update(asked.obj, merged):
        return _decided("it matches its manifest, so the next run writes nothing")
    shape = shape_of(asked.gvk.group_kind)
    found = differences(_without_status(asked.obj), _without_status(merged), shape)
    paths = [each.path for each in found if not each.path.startswith(_SERVERS)]
    fields = tuple(Evidence(Kind.FIELD, path) for path in paths[:_SHOWN])
    return Statement(
        topic=Topic.WAITS,
        text="the next run of the resource manager, which writes what differs from its manifest",
        because=_holdup(resource),
        evidence=fields,
    )


_SERVERS: Final = ("metadata.managedFields", "metadata.generation", "metadata.resourceVersion")


def _holdup(resource: JsonObject) -> str:
    """Return why the resource manager has not written yet."""
    if marks.is_truthy(annotations_of(resource).get(marks.IGNORE)):
        return f"annotation {marks.IGNORE} of the ManagedResource is set: it is not reconciled"
    if deletion_timestamp_of(resource) is not None:
        return "the ManagedResource is being deleted"
    return applied_problem(resource) or ""


def _previous(resource: JsonObject, asked: Asked) -> JsonObject | None:
    wanted = object_key_of(asked.gvk, asked.key)
    listed = maps_at(resource, "status", "resources")
    return next((ref for ref in listed if object_key(ref) == wanted), None)


async def _options(
    resource: JsonObject, origin: Origin, asked: Asked, reader: Reader
) -> MergeOptions:
    spec = map_at(resource, "spec")
    # The value of this label is configured; only the running resource manager knows it.
    managed = {marks.MANAGED_BY: labels_of(asked.obj).get(marks.MANAGED_BY, "gardener")}
    autoscalers = await reader.listed(HPA, asked.key.namespace) if asked.key.namespace else []
    return MergeOptions(
        origin=str(origin),
        labels={**map_at(resource, "spec", "injectLabels"), **managed},
        force_labels=bool(spec.get("forceOverwriteLabels")),
        force_annotations=bool(spec.get("forceOverwriteAnnotations")),
        scaled=scaled_objects(autoscalers, Equivalences.of(spec)),
    )


def _without_status(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name != "status"}


MANAGED_OBJECTS: Final = Explainer(
    "managed objects", lambda obj: marks.ORIGIN in annotations_of(obj), explain
)
