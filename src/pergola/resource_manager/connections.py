"""The connections of a process to its clusters."""

from contextlib import AsyncExitStack

from pergola.api.resource_manager_config import ClientConnection, ResourceManagerConfiguration
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, in_cluster, load
from pergola.resource_manager.assembly import Clusters
from pergola.runtime.metrics import Metrics


async def connect(
    config: ResourceManagerConfiguration,
    target_namespaces: tuple[str, ...],
    stack: AsyncExitStack,
    metrics: Metrics,
) -> Clusters:
    """Return clients for the clusters; the target is the source unless it has its own connection.

    Args:
        target_namespaces: the watched namespaces of the target; all if empty.
        stack: closes the clients.
    """

    async def client(to: ClusterConfig, connection: ClientConnection) -> Client:
        return await stack.enter_async_context(
            Client.connect(
                to, qps=connection.qps, burst=connection.burst, observe=metrics.client_request
            )
        )

    at = cluster_config(config.source_client_connection)
    source = target = await client(at, config.source_client_connection)
    if config.target_client_connection is not None:
        at = cluster_config(config.target_client_connection)
        target = await client(at, config.target_client_connection)
    return Clusters(source, target, target_namespaces, at.ca)


def cluster_config(connection: ClientConnection) -> ClusterConfig:
    """Return the cluster of a connection: its kubeconfig's, or that of the process."""
    if connection.kubeconfig:
        return load(connection.kubeconfig, restricted=True)
    return in_cluster()
