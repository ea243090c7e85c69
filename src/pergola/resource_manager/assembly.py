"""The controllers that a configuration enables, and their settings.

The controllers of ManagedResources always run; they are in `pergola.resource_manager.manager`. A
process imports only those that it runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from pergola.api.resource_manager_config import ResourceManagerConfiguration
from pergola.api.resource_manager_config.controllers import Switch
from pergola.kube.client import Client
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of an instance.

    Attributes:
        target_namespaces: the watched namespaces of the target; all if empty.
        target_ca: the certificates that identify the target's API server, PEM.
    """

    source: Client
    target: Client
    target_namespaces: tuple[str, ...] = ()
    target_ca: bytes | None = None

    def guarded(self, guard: Callable[[Client], Client]) -> "Clusters":
        """Return the same clusters with a guard on all writes."""
        return replace(self, source=guard(self.source), target=guard(self.target))


_Make = Callable[[ResourceManagerConfiguration, Clusters, Metrics], Unit]


def optional_controllers(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Iterator[Unit]:
    """Yield the controllers that a configuration enables."""
    controllers = config.controllers
    choices: tuple[tuple[Switch, _Make], ...] = (
        (controllers.token_requestor, _token_requestor),
        (controllers.token_invalidator, _token_invalidator),
        (controllers.csr_approver, _csr_approver),
        (controllers.network_policy, _network_policy),
        (controllers.node_critical_components, _node_critical_components),
        (controllers.node_agent_reconciliation_delay, _node_agent_reconciliation_delay),
        (controllers.istio_cluster_configuration, _istio_cluster_configuration),
    )
    for switch, make in choices:
        if switch.enabled:
            yield make(config, clusters, metrics)


def _token_requestor(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Unit:
    from pergola.resource_manager.controllers.token_requestor import Settings, token_requestor

    requestor = config.controllers.token_requestor
    settings = Settings(
        workers=requestor.workers,
        resource_class=requestor.class_ or "shoot",
        source_namespaces=tuple(config.source_client_connection.namespaces),
        target_namespaces=clusters.target_namespaces,
        audiences=tuple(requestor.audiences or ()),
        fixed_namespace=requestor.service_account_namespace,
        ca_bundle=clusters.target_ca,
    )
    return token_requestor(clusters.source, clusters.target, settings, metrics=metrics)


def _token_invalidator(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Unit:
    from pergola.resource_manager.controllers.token_invalidator import Settings, token_invalidator

    settings = Settings(
        workers=config.controllers.token_invalidator.workers, namespaces=clusters.target_namespaces
    )
    return token_invalidator(clusters.target, settings, metrics=metrics)


def _csr_approver(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Unit:
    from pergola.resource_manager.controllers.csr_approver import Settings, csr_approver

    approver = config.controllers.csr_approver
    settings = Settings(workers=approver.workers, machine_namespace=approver.machine_namespace)
    return csr_approver(clusters.source, clusters.target, settings, metrics=metrics)


def _network_policy(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Unit:
    from pergola.controllers.network_policy import network_policy
    from pergola.resource_manager.network_policies import network_policy_settings

    settings = network_policy_settings(config, clusters.target_namespaces)
    return network_policy(clusters.target, settings, metrics=metrics)


def _node_critical_components(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Unit:
    from pergola.resource_manager.controllers.node_critical_components import (
        Settings,
        node_critical_components,
    )

    critical = config.controllers.node_critical_components
    settings = Settings(
        workers=critical.workers,
        backoff=critical.backoff.total_seconds() if critical.backoff else 10.0,
        critical_namespaces=tuple(critical.critical_namespaces or ("kube-system",)),
    )
    return node_critical_components(clusters.target, settings, metrics=metrics)


def _node_agent_reconciliation_delay(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Unit:
    from pergola.resource_manager.controllers.node_agent_reconciliation_delay import (
        Settings,
        node_agent_reconciliation_delay,
    )

    spread = config.controllers.node_agent_reconciliation_delay
    settings = Settings(
        min_delay=spread.min_delay or timedelta(),
        max_delay=timedelta(minutes=5) if spread.max_delay is None else spread.max_delay,
    )
    return node_agent_reconciliation_delay(clusters.target, settings, metrics=metrics)


def _istio_cluster_configuration(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Unit:
    from pergola.resource_manager.controllers.istio_cluster_configuration import (
        Settings,
        istio_cluster_configuration,
    )

    settings = Settings(workers=config.controllers.istio_cluster_configuration.workers)
    return istio_cluster_configuration(clusters.target, settings, metrics=metrics)
