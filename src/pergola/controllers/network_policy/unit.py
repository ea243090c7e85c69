"""The unit of the controller `networkpolicy`."""

from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.controllers.network_policy.annotations import tidied
from pergola.controllers.network_policy.apply import Writer
from pergola.controllers.network_policy.intents import IngressController
from pergola.controllers.network_policy.reconcile import NetworkPolicies
from pergola.controllers.network_policy.triggers import Triggers
from pergola.controllers.network_policy.watches import Watches
from pergola.kube.client import Client
from pergola.kube.selectors import format_selector
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.metrics import Metrics

NAME: Final = "networkpolicy"
REPORTER: Final = "networkpolicy-controller"
_DEADLINE: Final = 180.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller.

    Attributes:
        namespace_selectors: label selectors for the namespaces whose Services are handled; all
            namespaces if empty.
        ingress_controller: its namespace and the label selector of its pods.
        only_for_matching_pods: whether to write policies for labelled callers only in namespaces
            where a pod has the label.
        grace: for how many seconds these policies stay after the last such pod disappeared, which
            may be about to be replaced.
        namespaces: the watched namespaces; all if empty.
    """

    workers: int = 5
    namespace_selectors: tuple[JsonObject, ...] = ()
    ingress_controller: tuple[str, JsonObject] | None = None
    only_for_matching_pods: bool = True
    grace: float = 30.0
    namespaces: tuple[str, ...] = ()


def network_policy(
    client: Client, settings: Settings, *, metrics: Metrics, clock: Clock | None = None
) -> Unit:
    """Return the controller `networkpolicy`, on the target cluster.

    Raises:
        SelectorError: a selector of the settings is malformed.
    """
    watches = Watches.of(
        client,
        namespaces=settings.namespaces,
        selectors=tuple(map(_checked, settings.namespace_selectors)),
        ingress_controller=_ingress_controller(settings),
        only_for_matching_pods=settings.only_for_matching_pods,
        grace=settings.grace,
    )
    writer = Writer(client, watches.policies)
    recorder = Recorder(client, REPORTER, clock=clock)
    reconciler = NetworkPolicies(watches, writer, recorder)
    return Controller(
        NAME,
        reconciler.reconcile,
        watches=Triggers(watches, writer).all(),
        caches=watches.caches(),
        workers=settings.workers,
        metrics=metrics,
        deadline=_DEADLINE,
        tasks=[recorder.run, watches.istio.pods.run],
    )


def _ingress_controller(settings: Settings) -> IngressController | None:
    if settings.ingress_controller is None:
        return None
    namespace, pod_selector = settings.ingress_controller
    return IngressController(namespace, _checked(pod_selector))


def _checked(selector: JsonObject) -> JsonObject:
    format_selector(selector)
    return tidied(selector)
