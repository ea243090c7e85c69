"""The changes of a resource manager's webhooks to an object, and the deletions they refuse.

Calls the resource manager's handlers for the webhooks that the cluster registers, with the
configuration of the running resource manager, or default settings if that cannot be read.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import orjson

from pergola.admission.review import Edit, GroupVersionResource, Operation
from pergola.admission.selection import Candidate, why_not_selected
from pergola.api.kinds import NAMESPACE, POD, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    map_at,
    maps_at,
    metadata_of,
    owner_references_of,
    uid_of,
)
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.kube.errors import Forbidden
from pergola.resource_manager.webhooks import explanation
from pergola.resource_manager.webhooks.catalog import everything, webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.documents import DocumentLookups
from pergola.resource_manager.webhooks.explanation import Explanation, Question, reviewed_kind
from pergola.resource_manager.webhooks.facts.lookups import ClusterLookups
from pergola.resource_manager.webhooks.installation import Installation
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.reading import Reader
from pergola.why.running_manager import webhook_configuration

_REGISTRATION: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final = (
    GroupVersionKind(_REGISTRATION, "v1", "MutatingWebhookConfiguration"),
    GroupVersionKind(_REGISTRATION, "v1", "ValidatingWebhookConfiguration"),
)
_SUFFIX: Final = ".resources.gardener.cloud"
_LONGEST: Final = 120


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the changes of each registered webhook to an object, and whether it may be deleted."""
    if reviewed_kind(asked.gvk) is None:
        return Part()
    namespace = asked.key.namespace
    found = await reader.find(NAMESPACE, Key("", namespace)) if namespace else None
    labels = labels_of(found) if found else None
    statements: list[Statement] = []
    operations: tuple[Operation, ...] = ("CREATE", "DELETE")
    for operation in operations:
        called = await _called(asked, operation, labels, reader)
        if called:
            config = await webhook_configuration(called.values(), reader)
            settings = config.webhooks if config else everything()
            said = await _ask(asked, operation, settings, reader)
            show = _changes if operation == "CREATE" else _refusals
            statements += show(asked, [each for each in said if each.webhook in called])
    return Part(statements=tuple(statements))


async def _called(
    asked: Asked, operation: Operation, labels: Mapping[str, str] | None, reader: Reader
) -> dict[str, JsonObject]:
    """Return, by name, the registered webhooks that the API server calls for a request."""
    kind = reviewed_kind(asked.gvk)
    if kind is None:
        return {}
    candidate = Candidate(
        operation,
        GroupVersionResource(kind.gvk.group, kind.gvk.version, kind.plural),
        labels=labels_of(asked.obj),
        namespace_labels=labels,
        namespaced=kind.namespaced,
    )
    found = [each for gvk in _CONFIGURATIONS for each in await reader.listed(gvk)]
    return {
        str(hook.get("name")): hook
        for each in found
        for hook in maps_at(each, "webhooks")
        if why_not_selected(hook, candidate) is None
    }


async def _as_created(asked: Asked, reader: Reader) -> JsonObject:
    """Return the object as submitted: a pod from its controller's template, others unchanged."""
    if asked.gvk != POD:
        return asked.obj
    for reference in owner_references_of(asked.obj):
        gvk = GroupVersionKind.of(reference)
        key = Key(asked.key.namespace, str(reference.get("name")))
        owner = await reader.find(gvk, key)
        template = map_at(owner or {}, "spec", "template")
        if owner and uid_of(owner) == reference.get("uid") and map_at(template, "spec"):
            kept = {name: metadata_of(asked.obj)[name] for name in ("name", "namespace")}
            metadata = {
                **metadata_of(template),
                **kept,
                "ownerReferences": owner_references_of(asked.obj),
            }
            return {**template, "apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return asked.obj


async def _ask(
    asked: Asked, operation: Operation, settings: Webhooks, reader: Reader
) -> list[Explanation]:
    """Return the answers of all webhooks to a request; none if the caller may not read enough."""
    kind, namespace = reviewed_kind(asked.gvk), asked.key.namespace
    if kind is None:
        return []
    nodes = settings.system_components_config.node_selector
    beyond = ClusterLookups(reader.client, system_nodes=nodes)
    lookups = DocumentLookups([], beyond, namespace=namespace or "default", system_nodes=nodes)
    found = webhooks(settings, Dependencies(Installation("runtime", hvpa=True), lookups))
    question = Question(
        kind=kind,
        obj=await _as_created(asked, reader) if operation == "CREATE" else asked.obj,
        operation=operation,
        old=None if operation == "CREATE" else asked.obj,
        namespace=namespace,
        namespace_labels=None,  # the registered selector has already selected the namespace
    )
    try:
        return await explanation.explain(question, found)
    except Forbidden as error:
        reader.note(f"the webhooks cannot be evaluated: {error}")
        return []


def _changes(asked: Asked, found: Sequence[Explanation]) -> Iterator[Statement]:
    for each in found:
        if each.outcome == "changed":
            yield Statement(
                topic=Topic.DECIDED,
                subject=f"webhook {_short(each)}",
                text="changes it on creation",
                below=tuple(_change(edit, asked) for edit in each.edits),
            )
        elif each.outcome == "refused":
            yield Statement(
                topic=Topic.PROBLEM,
                subject=f"webhook {_short(each)}",
                text=f"refuses it: {each.because}",
                advice="correct the fields that the webhook rejects",
            )


def _change(edit: Edit, asked: Asked) -> Statement:
    return Statement(topic=Topic.DECIDED, text=_text(edit, asked), because=edit.because)


def _text(edit: Edit, asked: Asked) -> str:
    if edit.op == "remove" or asked.gvk == SECRET:
        return f"{edit.op} {edit.path}"
    value = orjson.dumps(edit.value).decode()
    short = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    return f"{edit.op} {edit.path} = {short}"


def _refusals(asked: Asked, found: Sequence[Explanation]) -> Iterator[Statement]:
    """Yield the webhooks that refuse the deletion of an object."""
    for each in found:
        if each.outcome == "refused":
            yield Statement(
                topic=Topic.BLOCKED,
                subject=f"webhook {_short(each)}",
                text=f"refuses the deletion of the {asked.gvk.kind}: {each.because}",
            )


def _short(found: Explanation) -> str:
    return found.webhook.removesuffix(_SUFFIX)
