"""Metrics of a Garden's care: the state of each component, and response times."""

from prometheus_client import CollectorRegistry, Gauge

from pergola.api.kinds import DEPLOYMENT
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS, VIRTUAL_COMPONENTS_HEALTHY
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.operator.care.check import Observed, Unable


class CareMetrics:
    """The metrics about the results of the last run."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._components = Gauge(
            "pergola_garden_component_healthy",
            "Whether a component of the Garden was healthy at the last check",
            ["condition", "kind", "namespace", "name"],
            registry=registry,
        )
        self._seconds = Gauge(
            "pergola_garden_api_server_response_seconds",
            "How long the virtual API server took to answer the last health request",
            registry=registry,
        )

        self._durations = Gauge(
            "pergola_garden_check_seconds",
            "How long it took at the last check to observe what a condition is about",
            ["condition"],
            registry=registry,
        )

    def observe(self, observed: Observed) -> None:
        """Replace the results of the previous run."""
        self._components.clear()
        for condition, seconds in observed.seconds.items():
            self._durations.labels(condition).set(seconds)
        for condition in CARE_CONDITIONS:
            for key, failure in observed.failures(condition).items():
                labels = (condition, MANAGED_RESOURCE.kind, key.namespace, key.name)
                self._components.labels(*labels).set(failure is None)
        for kind, parts in ((ETCD.kind, observed.etcds), (DEPLOYMENT.kind, observed.deployments)):
            if not isinstance(parts, Unable):
                for name, problem in parts.items():
                    labels = (VIRTUAL_COMPONENTS_HEALTHY, kind, NAMESPACE, name)
                    self._components.labels(*labels).set(not problem)
        if observed.probe is not None:
            self._seconds.set(observed.probe.seconds)
