"""Why webhooks change an object, refuse it, or leave it unchanged; writes nothing.

Uses the served handlers and the registered selectors.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from pergola.admission.registration import Registration
from pergola.admission.review import (
    Edit,
    Handler,
    Operation,
    Request,
    Verdict,
)
from pergola.admission.review import GroupVersionResource as Resource
from pergola.admission.selection import Candidate, why_not_selected
from pergola.admission.webhook import Webhook
from pergola.api.kinds import DEPLOYMENT, HPA, HVPA, STATEFUL_SET
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, labels_of, name_of
from pergola.kube.selectors import format_selector
from pergola.resource_manager.webhooks.deletion_protection import PROTECTED
from pergola.resource_manager.webhooks.documents import Unanswered
from pergola.resource_manager.webhooks.endpoint_slice_hints import ENDPOINT_SLICES
from pergola.resource_manager.webhooks.extension_validation.kinds import KINDS
from pergola.resource_manager.webhooks.subjects import PODS, Subject
from pergola.resource_manager.webhooks.token_invalidator import SECRETS
from pergola.resource_manager.webhooks.vpa_in_place_updates import AUTOSCALERS

Outcome = Literal["changed", "unchanged", "allowed", "refused", "not asked", "unknown"]


class ReviewedKind(NamedTuple):
    """A kind that webhooks review."""

    gvk: GroupVersionKind
    plural: str
    namespaced: bool = True


class Explanation(Struct, frozen=True, kw_only=True):
    """The effect of one webhook on an object.

    Attributes:
        because: why it is not called, changes nothing, refuses, or cannot decide.
        edits: each with its own reason.
        assuming: an assumption about something unknown; may be empty.
        about: whether it reviews objects of this kind.
    """

    webhook: str
    outcome: Outcome
    because: str = ""
    edits: tuple[Edit, ...] = ()
    warnings: tuple[str, ...] = ()
    code: int = 200
    assuming: str = ""
    about: bool = True


class Question(Struct, frozen=True, kw_only=True):
    """An object, and the request to explain.

    Attributes:
        obj: the object to be stored; for DELETE, the stored one.
        old: the stored object; None for CREATE.
        namespace: empty for cluster-scoped kinds.
        namespace_labels: None if unknown.
    """

    kind: ReviewedKind
    obj: JsonObject
    operation: Operation = "CREATE"
    old: JsonObject | None = None
    namespace: str = ""
    namespace_labels: Mapping[str, str] | None = None


def _of(subject: Subject) -> ReviewedKind:
    group, kind = subject.kind
    return ReviewedKind(GroupVersionKind(group, subject.versions[0], kind), subject.plural)


_CLUSTER_SCOPED: Final = {"CustomResourceDefinition"} | {k.kind for k in KINDS if not k.namespaced}

REVIEWED_KINDS: Final[tuple[ReviewedKind, ...]] = (
    *map(_of, (PODS, SECRETS, ENDPOINT_SLICES, AUTOSCALERS)),
    ReviewedKind(DEPLOYMENT, "deployments"),
    ReviewedKind(STATEFUL_SET, "statefulsets"),
    ReviewedKind(
        HPA,
        "horizontalpodautoscalers",
    ),
    ReviewedKind(HVPA, "hvpas"),
    ReviewedKind(GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Bastion"), "bastions"),
    *(
        ReviewedKind(
            GroupVersionKind(resource.group, resource.version, kind),
            resource.resource,
            kind not in _CLUSTER_SCOPED,
        )
        for resource, kind in PROTECTED.items()
    ),
)


def reviewed_kind(gvk: GroupVersionKind) -> ReviewedKind | None:
    """Return a reviewed kind, in the same version if possible; None if no webhook reviews it."""
    same = [known for known in REVIEWED_KINDS if known.gvk.group_kind == gvk.group_kind]
    for known in same:
        if known.gvk == gvk:
            return known
    return same[0]._replace(gvk=gvk) if same else None


async def explain(question: Question, webhooks: Iterable[Webhook]) -> list[Explanation]:
    """Call the registered webhooks in order: each sees the changes of the previous ones."""
    obj, explanations = question.obj, []
    for webhook in webhooks:
        if webhook.is_registered:
            explanation = await _explain(webhook.registration, webhook.handler, question, obj)
            explanations.append(explanation)
            obj = applied(obj, explanation.edits)
    return explanations


def applied(obj: JsonObject, edits: Iterable[Edit]) -> JsonObject:
    """Return the object after some edits; unchanged parts are shared with the original."""
    for edit in edits:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in edit.path.split("/")[1:]]
        obj = _edited(obj, steps, edit)  # type: ignore[assignment] # no edit replaces the root
    return obj


async def _explain(
    entry: Registration, handler: Handler, question: Question, obj: JsonObject
) -> Explanation:
    rendered = entry.render({})
    candidate = Candidate(
        question.operation,
        _resource(question.kind),
        labels=labels_of(obj),
        namespace_labels=question.namespace_labels,
        namespaced=question.kind.namespaced,
    )
    reason = why_not_selected(rendered, candidate)
    if reason is not None:
        return Explanation(
            webhook=entry.name,
            outcome="not asked",
            because=reason,
            about=_is_about(entry, question.kind),
        )
    try:
        verdict = handler(_request(question, obj))
        if not isinstance(verdict, Verdict):
            verdict = await verdict
    except Unanswered as missing:
        return Explanation(webhook=entry.name, outcome="unknown", because=str(missing))
    return Explanation(
        webhook=entry.name,
        outcome=_outcome(entry, verdict),
        because=verdict.message if not verdict.allowed else verdict.because,
        edits=verdict.edits,
        warnings=verdict.warnings,
        code=verdict.code,
        assuming=_assumption(entry, question),
    )


def _request(question: Question, obj: JsonObject) -> Request:
    deleted = question.operation == "DELETE"
    return Request(
        uid="explain",
        operation=question.operation,
        kind=question.kind.gvk,
        resource=_resource(question.kind),
        namespace=question.namespace,
        name=name_of(obj),
        object=None if deleted else obj,
        old_object=question.old,
        dry_run=True,
    )


def _resource(kind: ReviewedKind) -> Resource:
    return Resource(kind.gvk.group, kind.gvk.version, kind.plural)


def _is_about(entry: Registration, kind: ReviewedKind) -> bool:
    return any(kind.gvk.group in r.groups and kind.plural in r.resources for r in entry.rules)


def _outcome(entry: Registration, verdict: Verdict) -> Outcome:
    if not verdict.allowed:
        return "refused"
    if entry.kind == "validating":
        return "allowed"
    return "changed" if verdict.edits else "unchanged"


def _assumption(entry: Registration, question: Question) -> str:
    unknown = question.kind.namespaced and question.namespace_labels is None
    if not unknown or not entry.namespace_selector:
        return ""
    selector = format_selector(entry.namespace_selector)
    return f"the labels of namespace {question.namespace} match: {selector}"


def _edited(value: JsonValue, steps: list[str], edit: Edit) -> JsonValue:
    step, *below = steps
    if isinstance(value, dict):
        changed = dict(value)
        if below:
            changed[step] = _edited(value[step], below, edit)
        elif edit.op == "remove":
            del changed[step]
        else:
            changed[step] = edit.value
        return changed
    if isinstance(value, list):
        return _edited_list(list(value), step, below, edit)
    raise ValueError(f"{edit.path} leads through a value that is neither a map nor a list")


def _edited_list(
    items: list[JsonValue], step: str, below: list[str], edit: Edit
) -> list[JsonValue]:
    if step == "-":
        items.append(edit.value)
    elif below:
        items[int(step)] = _edited(items[int(step)], below, edit)
    elif edit.op == "remove":
        del items[int(step)]
    elif edit.op == "add":
        items.insert(int(step), edit.value)
    else:
        items[int(step)] = edit.value
    return items
