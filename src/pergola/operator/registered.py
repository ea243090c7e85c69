"""The controllers that need a Garden or its virtual cluster (spec 21 §5.1).

Each has one entry for the registrar.
"""

from pergola.api.operator_config import OperatorConfiguration
from pergola.kube.client import Client
from pergola.operator import eviction_requirements, network_policies, virtual_access
from pergola.operator.copies import Copies
from pergola.operator.gardenlet import unit as gardenlets
from pergola.operator.registrar import ForGarden, ForVirtualCluster
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics


def for_garden(
    config: OperatorConfiguration,
    copies: Copies,
    virtual: VirtualCluster,
    server: str,
    metrics: Metrics,
) -> tuple[ForGarden, ...]:
    """Return the controllers that run while a Garden exists.

    Args:
        server: The URL of the runtime cluster's API server.
    """
    controllers = config.controllers

    def policies() -> Unit:
        settings = controllers.network_policy
        return network_policies.network_policies(
            copies,
            [chosen.to_json() for chosen in settings.additional_namespace_selectors],
            server,
            workers=settings.concurrent_syncs,
            metrics=metrics,
        )

    def evictions() -> Unit:
        return eviction_requirements.eviction_requirements(
            copies.client,
            workers=controllers.vpa_eviction_requirements.concurrent_syncs,
            metrics=metrics,
        )

    def access() -> Unit:
        return virtual_access.virtual_cluster_access(copies, virtual, metrics=metrics)

    return (
        ForGarden(network_policies.NAME, policies),
        ForGarden(eviction_requirements.NAME, evictions),
        ForGarden(virtual_access.NAME, access),
    )


def for_virtual_cluster(
    config: OperatorConfiguration, environment: gardenlets.Environment
) -> tuple[ForVirtualCluster, ...]:
    """Return the controllers that run while the virtual cluster is reachable."""
    workers = config.controllers.gardenlet_deployer.concurrent_syncs

    def deploying(virtual: Client) -> Unit:
        return gardenlets.gardenlets(environment, virtual, workers=workers)

    def updating(virtual: Client) -> Unit:
        return gardenlets.chart_updates(environment, virtual)

    return (
        ForVirtualCluster(gardenlets.NAME, deploying),
        ForVirtualCluster(gardenlets.UPDATES, updating),
    )
