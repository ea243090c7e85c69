"""Update mode that lets vertical pod autoscalers resize pods in place (spec 12 §13).

Temporary: once this mode is the autoscaler's default, the webhook can be disabled; the label that
it leaves behind is harmless (Beyond 21).
"""

from typing import Final

from pergola.admission.draft import Draft
from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict, allowed
from pergola.admission.webhook import Webhook, sharing
from pergola.api.objects import GroupKind, JsonObject
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.decoding import labels_in, text_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.installation import Installation, absent
from pergola.resource_manager.webhooks.subjects import Subject

NAME: Final = "vpa-in-place-updates.resources.gardener.cloud"
PATH: Final = "/webhooks/vpa-in-place-updates"
SKIP: Final = "vpa-in-place-updates.resources.gardener.cloud/skip"
MUTATED: Final = "vpa-in-place-updates.resources.gardener.cloud/mutated"
IN_PLACE: Final = "InPlaceOrRecreate"

AUTOSCALERS: Final = Subject(
    GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler"), "verticalpodautoscalers"
)
_MODE: Final = ("spec", "updatePolicy", "updateMode")
_DEFAULT: Final = "Auto"
_EVICTING: Final = (_DEFAULT, "Recreate")


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: changes of VerticalPodAutoscalers."""
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(AUTOSCALERS.rule,),
            namespace_selector=installation.namespaces(),
            object_selector=installation.objects(absent(SKIP)),
            match_policy="Equivalent",
            reinvocation="Never",
        )
    ]


def webhooks(_: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    return sharing(review, registrations(dependencies.installation))


def review(request: Request) -> Verdict:
    """Replace modes that evict; keep `Off` and `Initial`."""
    return AUTOSCALERS.answer(request, _decide)


def _decide(autoscaler: JsonObject) -> Verdict:
    labels_in(autoscaler)
    mode = text_in(autoscaler, *_MODE) or _DEFAULT
    if mode not in _EVICTING:
        return allowed(because=f"the update mode is {mode}")
    draft = Draft(autoscaler)
    draft.set(_MODE, IN_PLACE, f"the update mode {mode} evicts pods")
    draft.set(("metadata", "labels", MUTATED), "true", "the update mode was replaced")
    return draft.verdict("")
