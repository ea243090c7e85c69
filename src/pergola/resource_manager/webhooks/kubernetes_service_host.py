"""Letting pods reach their API server by its own name, without a proxy (spec 12 §4)."""

from typing import Final

from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict
from pergola.admission.webhook import Webhook, sharing
from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.decoding import maps_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.edits import appended, verdict
from pergola.resource_manager.webhooks.installation import Installation, none_of, selector
from pergola.resource_manager.webhooks.subjects import PODS

NAME: Final = "kubernetes-service-host.resources.gardener.cloud"
PATH: Final = "/webhooks/kubernetes-service-host"
INJECT: Final = "apiserver-proxy.networking.gardener.cloud/inject"
VARIABLE: Final = "KUBERNETES_SERVICE_HOST"

_TIMEOUT_SECONDS: Final = 2
_BECAUSE: Final = f"the container does not set {VARIABLE}"


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: creation of pods, unless the pod or namespace opts out."""
    desired = none_of(INJECT, ["disable"])
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(PODS.rule,),
            namespace_selector=selector(desired),
            object_selector=installation.pods(desired, own=True),
            failure_policy="Ignore",
            timeout_seconds=_TIMEOUT_SECONDS,
            reinvocation="Never",
        )
    ]


def webhooks(config: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    handler = KubernetesServiceHost(config.kubernetes_service_host.host)
    return sharing(handler, registrations(dependencies.installation))


class KubernetesServiceHost:
    """The handler.

    Args:
        host: the API server's address. An empty one would disconnect pods.
    """

    def __init__(self, host: str) -> None:
        if not host:
            raise ValueError("webhooks.kubernetesServiceHost.host is required")
        self._host = host

    def __call__(self, request: Request) -> Verdict:
        """Add the variable to containers without it, except ephemeral ones."""
        return PODS.answer(request, self._decide)

    def _decide(self, pod: JsonObject) -> Verdict:
        edits = []
        value: JsonObject = {"name": VARIABLE, "value": self._host}
        for kind in ("initContainers", "containers"):
            for index in range(len(maps_in(pod, "spec", kind))):
                env = maps_in(pod, "spec", kind, index, "env")
                if not any(entry.get("name") == VARIABLE for entry in env):
                    at = f"/spec/{kind}/{index}/env"
                    edits.append(appended(at, env, value, _BECAUSE))
        return verdict(edits, f"all containers already set {VARIABLE}")
