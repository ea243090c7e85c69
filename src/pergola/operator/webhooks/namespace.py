"""The webhook that protects the namespace of a Garden from deletion (spec 21 §9.1)."""

from http import HTTPStatus
from typing import Final

from pergola.admission import (
    Registration,
    Request,
    Rule,
    Verdict,
    Webhook,
    allowed,
    denied,
    errored,
)
from pergola.kube.errors import KubeError
from pergola.operator.webhooks.lookups import Lookups

GARDEN_NAMESPACE: Final = "garden"
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
REGISTRATION: Final = Registration(
    name="namespace-deletion-validation.operator.gardener.cloud",
    path="/webhooks/validate-core-v1-namespace",
    kind="validating",
    rules=(Rule(("DELETE",), ("",), ("v1",), ("namespaces",)),),
    object_selector={"matchLabels": {NAMESPACE_NAME: GARDEN_NAMESPACE}},
    match_policy="Exact",
)
_FORBIDDEN: Final = (
    f'deletion of namespace "{GARDEN_NAMESPACE}" is forbidden while a Garden resource exists - '
    "delete it first before deleting the namespace"
)


def namespace_deletion(lookups: Lookups) -> Webhook:
    """Return the webhook that denies deletion of the namespace while a Garden exists."""

    async def review(request: Request) -> Verdict:
        if request.operation != "DELETE" or request.name != GARDEN_NAMESPACE:
            return allowed(because="it is not the deletion of the garden's namespace")
        try:
            gardens = await lookups.gardens()
        except KubeError as error:
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        return denied(_FORBIDDEN) if gardens else allowed(because="no Garden exists")

    return Webhook(registration=REGISTRATION, handler=review)
