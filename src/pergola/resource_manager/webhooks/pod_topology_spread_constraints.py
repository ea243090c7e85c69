"""Topology spread constraints that count only pods of the same ReplicaSet (spec 12 §6).

In newer clusters, `matchLabelKeys` has the same effect: pods of an old ReplicaSet do not affect how
those of a new one are spread.
"""

from typing import Final

from pergola.admission.draft import Draft
from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict, allowed
from pergola.admission.webhook import Webhook, sharing
from pergola.api.objects import JsonObject, JsonValue
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.decoding import map_in, maps_in, text_in, texts_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.installation import Installation, absent
from pergola.resource_manager.webhooks.subjects import PODS

NAME: Final = "pod-topology-spread-constraints.resources.gardener.cloud"
PATH: Final = "/webhooks/pod-topology-spread-constraints"
SKIP: Final = "topology-spread-constraints.resources.gardener.cloud/skip"
HASH: Final = "pod-template-hash"

_CONSTRAINTS: Final = ("spec", "topologySpreadConstraints")


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: creation of pods."""
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(PODS.rule,),
            namespace_selector=installation.namespaces(),
            object_selector=installation.pods(absent(SKIP), managed=True),
        )
    ]


def webhooks(_: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    return sharing(review, registrations(dependencies.installation))


def review(request: Request) -> Verdict:
    """Add the pod's `pod-template-hash` to constraints that do not select by it."""
    return PODS.answer(request, _decide)


def _decide(pod: JsonObject) -> Verdict:
    template = text_in(pod, "metadata", "labels", HASH)
    if not template:
        return allowed(because=f"the pod has no label {HASH}: it does not belong to a ReplicaSet")
    constraints = maps_in(pod, *_CONSTRAINTS)
    if not constraints:
        return allowed(because="the pod has no topology spread constraints")
    draft = Draft(pod)
    for index in range(len(constraints)):
        if not _selects(pod, index):
            _narrow(draft, pod, index, template)
    return draft.verdict(f"all constraints select by {HASH}")


def _selects(pod: JsonObject, index: int) -> bool:
    """Return whether a constraint already selects by `pod-template-hash`."""
    selector = (*_CONSTRAINTS, index, "labelSelector")
    if HASH in map_in(pod, *selector, "matchLabels"):
        return True
    expressions = maps_in(pod, *selector, "matchExpressions")
    return any(e.get("key") == HASH and e.get("operator") == "In" for e in expressions)


def _narrow(draft: Draft, pod: JsonObject, index: int, template: str) -> None:
    constraint = (*_CONSTRAINTS, index)
    because = f"the constraint also counts pods of other ReplicaSets: it does not select by {HASH}"
    draft.set((*constraint, "labelSelector", "matchLabels", HASH), template, because)
    keys = texts_in(pod, *constraint, "matchLabelKeys")
    if HASH not in keys:
        return
    because = "an API server rejects a label in both labelSelector and matchLabelKeys"
    rest: list[JsonValue] = [key for key in keys if key != HASH]
    if rest:
        draft.set((*constraint, "matchLabelKeys"), rest, because)
    else:
        draft.remove((*constraint, "matchLabelKeys"), because)
