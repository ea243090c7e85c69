"""The webhook that fills in the defaults of Gardens (spec 21 §8.1)."""

from typing import Final

from pergola.admission import Draft, Registration, Request, Rule, Verdict, Webhook, allowed
from pergola.api.operator_v1alpha1 import GROUP, VERSION
from pergola.api.operator_v1alpha1.defaults import defaults_of

REGISTRATION: Final = Registration(
    name="garden-defaulting.operator.gardener.cloud",
    path="/webhooks/default-operator-gardener-cloud-v1alpha1-garden",
    kind="mutating",
    rules=(Rule(("CREATE", "UPDATE", "DELETE"), (GROUP,), (VERSION,), ("gardens",)),),
    match_policy="Exact",
)


def default(request: Request) -> Verdict:
    """Return the defaults that a Garden lacks, as edits."""
    if request.object is None:
        return allowed(because=f"{request.operation} stores no Garden")
    draft = Draft(request.object)
    for path, value in defaults_of(request.object):
        draft.set(path, value, "a default of the Garden API")
    return draft.verdict("the Garden already has all its defaults")


WEBHOOK: Final = Webhook(registration=REGISTRATION, handler=default)
