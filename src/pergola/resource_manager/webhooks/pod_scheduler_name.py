"""Assignment of pods without a scheduler to the configured one (spec 12 §11)."""

from typing import Final

from pergola.admission.draft import Draft
from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict, allowed
from pergola.admission.webhook import Webhook, sharing
from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.decoding import text_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.subjects import PODS

NAME: Final = "pod-scheduler-name.resources.gardener.cloud"
PATH: Final = "/webhooks/default-pod-scheduler-name"
DEFAULT: Final = "default-scheduler"


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: creation of pods in all namespaces, never blocking."""
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(PODS.rule,),
            object_selector=installation.pods(own=True),
            failure_policy="Ignore",
        )
    ]


def webhooks(config: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    handler = PodSchedulerName(config.pod_scheduler_name.scheduler_name or DEFAULT)
    return sharing(handler, registrations(dependencies.installation))


class PodSchedulerName:
    """The handler.

    Args:
        scheduler: the name to set in pods.
    """

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler

    def __call__(self, request: Request) -> Verdict:
        """Set the scheduler, unless the pod names another one."""
        return PODS.answer(request, self._decide)

    def _decide(self, pod: JsonObject) -> Verdict:
        chosen = text_in(pod, "spec", "schedulerName")
        if chosen not in ("", DEFAULT):
            return allowed(because=f"the pod names the scheduler {chosen}")
        draft = Draft(pod)
        draft.set(("spec", "schedulerName"), self._scheduler, "the pod names no scheduler")
        return draft.verdict(f"the scheduler is already {self._scheduler}")
