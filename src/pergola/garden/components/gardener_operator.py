"""The autoscaler and the ServiceMonitor of the operator itself (spec 20 §13)."""

from typing import Final

from pergola.garden.components import monitoring
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.removal import removable
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import target_reference, vertical_pod_autoscaler

NAME: Final = "gardener-operator"

_PODS: Final = {"app": "gardener", "role": "operator"}
_LEAST: Final = {"memory": "200Mi"}
_METRICS: Final = ("rest_client_.+", "controller_runtime_.+", "workqueue_.+", "go_.+")


def autoscaler(landscape: Landscape) -> Rendered:
    """Return the autoscaler of the operator's Deployment."""
    del landscape
    target = target_reference("Deployment", NAME)
    return Rendered(
        direct=(vertical_pod_autoscaler(f"{NAME}-vpa", NAMESPACE, target, NAME, _LEAST),)
    )


def service_monitor(landscape: Landscape) -> Rendered:
    """Return the operator's ServiceMonitor for the garden Prometheus."""
    del landscape
    endpoint = monitoring.endpoint("metrics", metrics=monitoring.kept_metrics(*_METRICS))
    return Rendered(direct=(monitoring.service_monitor(monitoring.GARDEN, NAME, _PODS, endpoint),))


OPERATOR_AUTOSCALER: Final = Component(
    name=f"{NAME}-vpa",
    deploy="Deploying VPA for gardener-operator",
    render=autoscaler,
    waits=False,
    removable=removable(f"VerticalPodAutoscaler {NAME}-vpa"),
)
OPERATOR_SERVICE_MONITOR: Final = Component(
    name=f"{NAME}-service-monitor",
    deploy="Deploying ServiceMonitor for gardener-operator",
    render=service_monitor,
    waits=False,
    removable=removable(f"ServiceMonitor garden-{NAME}"),
)
