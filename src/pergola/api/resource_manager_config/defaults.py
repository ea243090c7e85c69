"""Defaults that depend on other settings.

Independent defaults are part of the types; these depend on the enabled controllers and webhooks.
Explicit settings are never changed.
"""

from pergola.api.resource_manager_config.controllers import Controllers, OptionalController
from pergola.api.resource_manager_config.v1alpha1 import (
    ClientConnection,
    ResourceManagerConfiguration,
)
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.api.schema.duration import Duration


def fill_defaults(config: ResourceManagerConfiguration) -> None:
    """Set the defaults that depend on other settings, in place."""
    for connection in (config.source_client_connection, config.target_client_connection):
        if connection is not None:
            _connection(connection)
    _workers(config.controllers)
    _controllers(config.controllers)
    _webhooks(config.webhooks)


def _connection(connection: ClientConnection) -> None:
    """Merge the namespaces of both fields; an empty name in the list means all."""
    names = connection.namespaces
    if names and "" in names:
        connection.namespaces = []
        return
    one = [connection.namespace] if connection.namespace else []
    connection.namespaces = list(dict.fromkeys([*names, *one]))


def _workers(controllers: Controllers) -> None:
    of_five: tuple[OptionalController, ...] = (
        controllers.network_policy,
        controllers.token_requestor,
        controllers.token_invalidator,
        controllers.node_critical_components,
        controllers.istio_cluster_configuration,
    )
    for controller in of_five:
        if controller.enabled and controller.concurrent_syncs is None:
            controller.concurrent_syncs = 5
    approver = controllers.csr_approver
    if approver.enabled and approver.concurrent_syncs is None:
        approver.concurrent_syncs = 1


def _controllers(controllers: Controllers) -> None:
    collector = controllers.garbage_collector
    if collector.enabled and collector.sync_period is None:
        collector.sync_period = Duration(hours=1)
    if collector.enabled and collector.minimum_age is None:
        collector.minimum_age = Duration(minutes=10)
    requestor = controllers.token_requestor
    if requestor.enabled and requestor.class_ is None:
        requestor.class_ = "shoot"
    if requestor.enabled and requestor.audiences is None:
        requestor.audiences = ["gardener"]
    nodes = controllers.node_critical_components
    if nodes.enabled and nodes.backoff is None:
        nodes.backoff = Duration(seconds=10)
    if nodes.enabled and nodes.critical_namespaces is None:
        nodes.critical_namespaces = ["kube-system"]
    delay = controllers.node_agent_reconciliation_delay
    if delay.enabled and delay.min_delay is None:
        delay.min_delay = Duration()
    if delay.enabled and delay.max_delay is None:
        delay.max_delay = Duration(minutes=5)


def _webhooks(webhooks: Webhooks) -> None:
    scheduler = webhooks.pod_scheduler_name
    if scheduler.enabled and scheduler.scheduler_name is None:
        scheduler.scheduler_name = "default-scheduler"
    token = webhooks.projected_token_mount
    if token.enabled and token.expiration_seconds is None:
        token.expiration_seconds = 43200
