"""Why an object of a ManagedResource is as it is: its document, and the decision of the last run.

Decides with the functions of the resource manager: like a run, it reads the manifest from the
Secret, merges it with the live object, and compares.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.resource_manager.controllers.managed_resource.decode import (
    Decoded,
)
from pergola.resource_manager.controllers.managed_resource.prune import describe, why_kept
from pergola.resource_manager.controllers.managed_resource.references import reference
from pergola.resource_manager.origin import Origin, parse_origin
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.comparison import comparison
from pergola.why.managed_resource_problems import applied_remarks
from pergola.why.manifests import Content, content_of, lists
from pergola.why.reading import Reader


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the resource manager's decision about a managed object."""
    origin = parse_origin(annotations_of(asked.obj).get(marks.ORIGIN, ""))
    if origin is None:
        return Part()
    resource = await reader.source.find(MANAGED_RESOURCE, Key(origin.namespace, origin.name))
    if resource is None:
        return await _without_resource(reader, origin)
    content = await content_of(resource, reader.source, reader)
    manifest = _manifest(content.decoded, asked)
    if manifest is None:
        return _without_manifest(asked, resource, content, origin)
    statements = [*_rules(manifest, asked, origin), *_remarks(asked, resource)]
    statement = await comparison(asked, resource, content.decoded, manifest, reader)
    is_same = statement.topic is not Topic.WAITS
    sentence = "is as its manifest describes it" if is_same else "differs from its manifest"
    return Part(sentence=sentence, statements=(statement, *statements))


def _remarks(asked: Asked, resource: JsonObject) -> Iterator[Statement]:
    """Yield what the last run said about the object."""
    for remark in applied_remarks(resource):
        subject, _, text = remark.partition('" ')
        if subject == describe(reference(asked.gvk, asked.key, {}, {})).removesuffix('"'):
            yield Statement(topic=Topic.PROBLEM, text=f"it {text}")


def _manifest(decoded: Decoded, asked: Asked) -> JsonObject | None:
    identity = (asked.gvk.group_kind, asked.key)
    found = (
        obj
        for obj in (*decoded.objects, *decoded.released)
        if (GroupVersionKind.of(obj).group_kind, Key.of(obj)) == identity
    )
    return next(found, None)


async def _without_resource(reader: Reader, origin: Origin) -> Part:
    """Return what is known of an object whose ManagedResource was not found."""
    resource = f"ManagedResource {origin.key}"
    if reader.source is reader:
        step = (
            f"find {resource}, which is not in this cluster: if another one has it, run the same "
            "command with --source-kubeconfig FILE; if it was deleted, nothing manages the object"
        )
        return Part(next_steps=(step,))
    if not await reader.source.is_missing(MANAGED_RESOURCE, origin.key):
        return Part()  # it may not be read, which the answer says
    text = f"it stays as it is: {resource} does not exist, so nothing manages the object"
    return Part(
        sentence="is no longer managed", statements=(Statement(topic=Topic.DECIDED, text=text),)
    )


def _without_manifest(asked: Asked, resource: JsonObject, content: Content, origin: Origin) -> Part:
    """Return what happens to an object that its ManagedResource does not describe."""
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
        text = f"it stays, although its ManagedResource no longer describes it: {kept}"
    elif lists(resource, asked.gvk, asked.key):
        text = "it will be deleted: its ManagedResource no longer describes it"
    else:
        text = "its ManagedResource neither describes nor lists it: it was released"
    return Part(
        sentence="is not in the Secrets of its ManagedResource",
        statements=(Statement(topic=Topic.DECIDED, text=text),),
    )


def _rules(manifest: JsonObject, asked: Asked, origin: Origin) -> Iterator[Statement]:
    """Yield the manifest's annotations that change how a run treats the object."""
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
    marks.DELETE_ON_INVALID_UPDATE: "it is deleted and recreated if an update is not valid",
    marks.SKIP_HEALTH_CHECK: "its health is ignored",
}


def _decided(text: str, because: str = "") -> Statement:
    return Statement(topic=Topic.DECIDED, text=text, because=because)
