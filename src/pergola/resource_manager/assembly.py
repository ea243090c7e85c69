"""The controllers that a configuration enables, and their settings.

The controllers of ManagedResources always run; they are in `pergola.resource_manager.manager`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from pergola.api.resource_manager_config import ResourceManagerConfiguration
from pergola.controllers import network_policy as policies
from pergola.kube.client import Client
from pergola.resource_manager.controllers import csr_approver as csr
from pergola.resource_manager.controllers import istio_cluster_configuration as istio
from pergola.resource_manager.controllers import node_agent_reconciliation_delay as delay
from pergola.resource_manager.controllers import node_critical_components as nodes
from pergola.resource_manager.controllers import token_invalidator as invalidator
from pergola.resource_manager.controllers import token_requestor as tokens
from pergola.resource_manager.network_policies import network_policy_settings
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


def optional_controllers(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Iterator[Unit]:
    """Yield the controllers that a configuration enables."""
    source, target, controllers = clusters.source, clusters.target, config.controllers
    if controllers.token_requestor.enabled:
        yield tokens.token_requestor(
            source, target, _token_requestor(config, clusters), metrics=metrics
        )
    if controllers.token_invalidator.enabled:
        yield invalidator.token_invalidator(
            target,
            invalidator.Settings(
                workers=controllers.token_invalidator.workers,
                namespaces=clusters.target_namespaces,
            ),
            metrics=metrics,
        )
    approver = controllers.csr_approver
    if approver.enabled:
        settings = csr.Settings(
            workers=approver.workers, machine_namespace=approver.machine_namespace
        )
        yield csr.csr_approver(source, target, settings, metrics=metrics)
    if controllers.network_policy.enabled:
        yield policies.network_policy(
            target, network_policy_settings(config, clusters.target_namespaces), metrics=metrics
        )
    yield from _of_nodes(config, clusters, metrics)
    if controllers.istio_cluster_configuration.enabled:
        yield istio.istio_cluster_configuration(
            target,
            istio.Settings(workers=controllers.istio_cluster_configuration.workers),
            metrics=metrics,
        )


def _of_nodes(
    config: ResourceManagerConfiguration, clusters: Clusters, metrics: Metrics
) -> Iterator[Unit]:
    critical = config.controllers.node_critical_components
    if critical.enabled:
        yield nodes.node_critical_components(
            clusters.target,
            nodes.Settings(
                workers=critical.workers,
                backoff=critical.backoff.total_seconds() if critical.backoff else 10.0,
                critical_namespaces=tuple(critical.critical_namespaces or ("kube-system",)),
            ),
            metrics=metrics,
        )
    spread = config.controllers.node_agent_reconciliation_delay
    if spread.enabled:
        yield delay.node_agent_reconciliation_delay(
            clusters.target,
            delay.Settings(
                min_delay=spread.min_delay or timedelta(),
                max_delay=timedelta(minutes=5) if spread.max_delay is None else spread.max_delay,
            ),
            metrics=metrics,
        )


def _token_requestor(config: ResourceManagerConfiguration, clusters: Clusters) -> tokens.Settings:
    requestor = config.controllers.token_requestor
    return tokens.Settings(
        workers=requestor.workers,
        resource_class=requestor.class_ or "shoot",
        source_namespaces=tuple(config.source_client_connection.namespaces),
        target_namespaces=clusters.target_namespaces,
        audiences=tuple(requestor.audiences or ()),
        fixed_namespace=requestor.service_account_namespace,
        ca_bundle=clusters.target_ca,
    )
