"""Overwriting of unused tokens in Secrets (spec 12 §9).

The controller of the same name selects and labels these Secrets.
"""

from typing import Final

from pergola.admission.draft import Draft
from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict, allowed
from pergola.admission.webhook import Webhook, sharing
from pergola.api.objects import GroupKind, JsonObject
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.decoding import labels_in, map_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.installation import Installation, selector
from pergola.resource_manager.webhooks.subjects import Subject

NAME: Final = "token-invalidator.resources.gardener.cloud"
PATH: Final = "/webhooks/invalidate-service-account-token-secret"
PURPOSE: Final = "resources.gardener.cloud/purpose"
PURPOSE_INVALIDATION: Final = "token-invalidator"
CONSIDER: Final = "token-invalidator.resources.gardener.cloud/consider"
INVALID_TOKEN: Final = "AAAA"  # noqa: S105 - three NUL bytes, which are not a token

SECRETS: Final = Subject(GroupKind("", "Secret"), "secrets")


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: changes of Secrets that the controller has labelled."""
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(SECRETS.rule,),
            namespace_selector=installation.namespaces(),
            object_selector=selector(labels={PURPOSE: PURPOSE_INVALIDATION}),
        )
    ]


def webhooks(_: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    return sharing(review, registrations(dependencies.installation))


def review(request: Request) -> Verdict:
    """Overwrite the token, or remove an overwritten one so that a new one is issued."""
    return SECRETS.answer(request, _decide)


def _decide(secret: JsonObject) -> Verdict:
    data = map_in(secret, "data")
    if secret.get("data") is None:
        return allowed(because="the Secret has no data")
    draft = Draft(secret)
    if CONSIDER in labels_in(secret):
        draft.set(("data", "token"), INVALID_TOKEN, f"the label {CONSIDER} is set")
        return draft.verdict("the token is already invalid")
    if data.get("token") == INVALID_TOKEN:
        because = f"the label {CONSIDER} was removed: a valid token may be issued again"
        draft.remove(("data", "token"), because)
    return draft.verdict(f"the label {CONSIDER} is not set")
