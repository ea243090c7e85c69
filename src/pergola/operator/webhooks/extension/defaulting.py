"""The webhook that fills in the defaults of Extensions (spec 21 §8.3)."""

from typing import Final

from pergola.admission import Draft, Registration, Request, Rule, Verdict, Webhook, allowed
from pergola.api.objects import JsonObject, map_at
from pergola.api.operator_v1alpha1 import GROUP, VERSION

REGISTRATION: Final = Registration(
    name="extension-defaulting.operator.gardener.cloud",
    path="/webhooks/default-operator-gardener-cloud-v1alpha1-extension",
    kind="mutating",
    rules=(Rule(("CREATE", "UPDATE"), (GROUP,), (VERSION,), ("extensions",)),),
    match_policy="Exact",
)
_RESOURCES: Final = ("spec", "resources")
_DEPLOYMENT: Final = ("spec", "deployment", "extension")


def default(request: Request) -> Verdict:
    """Return the defaults that an Extension lacks, as edits."""
    if request.object is None:
        return allowed(because=f"{request.operation} stores no Extension")
    draft = Draft(request.object)
    fill(draft)
    return draft.verdict("the Extension already has all its defaults")


def fill(draft: Draft) -> None:
    """Set the defaults that an Extension lacks."""
    resources = draft.get(*_RESOURCES)
    for index, resource in enumerate(resources if isinstance(resources, list) else ()):
        if isinstance(resource, dict):
            _resource(draft, index, resource)
    _kubeconfig(draft)


def _resource(draft: Draft, index: int, resource: JsonObject) -> None:
    if resource.get("primary") is None:
        because = "one extension is responsible for a resource unless declared otherwise"
        draft.set((*_RESOURCES, index, "primary"), value=True, because=because)
    enabled, compatible = resource.get("autoEnable"), resource.get("clusterCompatibility")
    is_for_shoots = isinstance(enabled, list) and "shoot" in enabled
    if resource.get("kind") == "Extension" and not compatible and is_for_shoots:
        at = (*_RESOURCES, index, "clusterCompatibility")
        draft.set(at, ["shoot"], because="autoEnable names shoot")


def _kubeconfig(draft: Draft) -> None:
    resources, deployment = draft.get(*_RESOURCES), map_at(draft.object, *_DEPLOYMENT)
    has_worker = isinstance(resources, list) and any(
        isinstance(resource, dict) and resource.get("kind") == "Worker" for resource in resources
    )
    if has_worker and deployment and deployment.get("injectGardenKubeconfig") is None:
        because = "an extension for Workers reads the garden"
        draft.set((*_DEPLOYMENT, "injectGardenKubeconfig"), value=True, because=because)


WEBHOOK: Final = Webhook(registration=REGISTRATION, handler=default)
