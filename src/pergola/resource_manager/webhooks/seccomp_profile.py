"""Defaulting of the pods' seccomp profile to that of the container runtime (spec 12 §10)."""

from typing import Final

from pergola.admission.draft import Draft
from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict, allowed
from pergola.admission.webhook import Webhook, sharing
from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.decoding import text_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.installation import Installation, absent
from pergola.resource_manager.webhooks.subjects import PODS

NAME: Final = "seccomp-profile.resources.gardener.cloud"
PATH: Final = "/webhooks/seccomp-profile"
SKIP: Final = "seccompprofile.resources.gardener.cloud/skip"

_PROFILE: Final = ("spec", "securityContext", "seccompProfile")


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: creation of pods."""
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(PODS.rule,),
            namespace_selector=installation.namespaces(),
            object_selector=installation.pods(absent(SKIP)),
        )
    ]


def webhooks(_: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    return sharing(review, registrations(dependencies.installation))


def review(request: Request) -> Verdict:
    """Set the profile of the pod; profiles of its containers are ignored."""
    return PODS.answer(request, _decide)


def _decide(pod: JsonObject) -> Verdict:
    profile = text_in(pod, *_PROFILE, "type")
    if profile:
        return allowed(because=f"the pod names the profile {profile}")
    if text_in(pod, "spec", "os", "name") == "windows":
        return allowed(because="pods for Windows cannot have a seccomp profile")
    draft = Draft(pod)
    draft.set(_PROFILE, {"type": "RuntimeDefault"}, "the pod names no seccomp profile")
    return draft.verdict("")
