"""Validation beyond the schema (spec 10 §13.2, spec 11 §8, spec 12 §1.5)."""

from collections.abc import Iterator
from datetime import timedelta

from pergola.api.component_config import (
    at_least,
    check_leader_election,
    check_sharding,
    positive,
)
from pergola.api.core_v1_validation import (
    is_dns_label,
    label_findings,
    label_value_findings,
    selector_findings,
    toleration_findings,
)
from pergola.api.object_names import name_problem
from pergola.api.resource_manager_config.controllers import (
    Controllers,
    NetworkPolicies,
    NodeAgentReconciliationDelay,
    NodeCriticalComponents,
    OptionalController,
    TokenRequestor,
)
from pergola.api.resource_manager_config.v1alpha1 import (
    ClientConnection,
    ResourceManagerConfiguration,
    WebhookServer,
)
from pergola.api.resource_manager_config.webhooks import SystemComponentsConfig, Webhooks
from pergola.api.schema.duration import Duration
from pergola.api.schema.validate import Finding, child, item

_SHORTEST_SYNC = timedelta(seconds=15)
_SHORTEST_RESYNC = timedelta(seconds=10)


def check(config: ResourceManagerConfiguration) -> Iterator[Finding]:
    """Yield findings about a configuration that follows its schema and has its defaults."""
    yield from _connection(config.source_client_connection, "sourceClientConnection")
    if config.target_client_connection is not None:
        yield from _connection(config.target_client_connection, "targetClientConnection")
    yield from check_leader_election(config.leader_election, "leaderElection")
    yield from check_sharding(config.sharding, config.leader_election, "sharding")
    yield from _controllers(config.controllers, "controllers")
    yield from _webhooks(config.webhooks, "webhooks")
    yield from _webhook_server(config.server.webhooks, "server.webhooks")
    if config.controllers.token_invalidator.enabled != config.webhooks.token_invalidator.enabled:
        yield Finding(
            "controllers.tokenInvalidator",
            "forbidden: controller and webhook must both be enabled or both disabled",
        )


def _connection(connection: ClientConnection, path: str) -> Iterator[Finding]:
    at = child(path, "cacheResyncPeriod")
    yield from at_least(connection.cache_resync_period, _SHORTEST_RESYNC, at)


def _controllers(controllers: Controllers, path: str) -> Iterator[Finding]:
    if ":" in controllers.cluster_id:
        yield Finding(
            child(path, "clusterID"),
            'must not contain ":", which ends the id in origins of objects',
        )
    resources = child(path, "managedResources")
    yield from at_least(
        controllers.managed_resources.sync_period, _SHORTEST_SYNC, child(resources, "syncPeriod")
    )
    yield from label_value_findings(
        controllers.managed_resources.managed_by_label_value,
        child(resources, "managedByLabelValue"),
    )
    health = child(child(path, "health"), "syncPeriod")
    yield from at_least(controllers.health.sync_period, _SHORTEST_SYNC, health)
    collector = controllers.garbage_collector
    if collector.enabled and collector.sync_period is not None:
        at = child(child(path, "garbageCollector"), "syncPeriod")
        yield from at_least(collector.sync_period, _SHORTEST_SYNC, at)
    if collector.enabled and collector.minimum_age is not None:
        at = child(child(path, "garbageCollector"), "minimumAge")
        yield from at_least(collector.minimum_age, Duration(), at)
    yield from _workers(controllers, path)
    yield from _optional_controllers(controllers, path)


def _workers(controllers: Controllers, path: str) -> Iterator[Finding]:
    optional: dict[str, OptionalController] = {
        "csrApprover": controllers.csr_approver,
        "networkPolicy": controllers.network_policy,
        "tokenRequestor": controllers.token_requestor,
        "tokenInvalidator": controllers.token_invalidator,
        "nodeCriticalComponents": controllers.node_critical_components,
        "istioClusterConfiguration": controllers.istio_cluster_configuration,
    }
    for name, controller in optional.items():
        if controller.enabled and controller.workers < 1:
            yield Finding(child(child(path, name), "concurrentSyncs"), "must be at least 1")


def _optional_controllers(controllers: Controllers, path: str) -> Iterator[Finding]:
    approver = controllers.csr_approver
    if approver.enabled and approver.machine_namespace == "":
        yield Finding(child(path, "csrApprover.machineNamespace"), "must be absent or not empty")
    if controllers.token_requestor.enabled:
        yield from _token_requestor(controllers.token_requestor, child(path, "tokenRequestor"))
    if controllers.network_policy.enabled:
        yield from _network_policy(controllers.network_policy, child(path, "networkPolicy"))
    if controllers.node_critical_components.enabled:
        at = child(path, "nodeCriticalComponents")
        yield from _node_critical(controllers.node_critical_components, at)
    if controllers.node_agent_reconciliation_delay.enabled:
        at = child(path, "nodeAgentReconciliationDelay")
        yield from _delay(controllers.node_agent_reconciliation_delay, at)


def _token_requestor(requestor: TokenRequestor, path: str) -> Iterator[Finding]:
    if requestor.class_ == "":
        yield Finding(child(path, "class"), "must not be empty")
    for index, audience in enumerate(requestor.audiences or ()):
        if not audience:
            yield Finding(item(child(path, "audiences"), index), "must not be empty")
    if problem := requestor.service_account_namespace and name_problem(
        requestor.service_account_namespace
    ):
        yield Finding(child(path, "serviceAccountNamespace"), problem)


def _network_policy(policies: NetworkPolicies, path: str) -> Iterator[Finding]:
    for index, selector in enumerate(policies.namespace_selectors):
        yield from selector_findings(selector, item(child(path, "namespaceSelectors"), index))
    ingress, at = policies.ingress_controller_selector, child(path, "ingressControllerSelector")
    if ingress is None:
        return
    if not ingress.namespace:
        yield Finding(child(at, "namespace"), "is required")
    if ingress.pod_selector is None:
        yield Finding(child(at, "podSelector"), "is required")
    else:
        yield from selector_findings(ingress.pod_selector, child(at, "podSelector"))


def _node_critical(nodes: NodeCriticalComponents, path: str) -> Iterator[Finding]:
    yield from positive(nodes.backoff or Duration(), child(path, "backoff"))
    at = child(path, "criticalNamespaces")
    if not nodes.critical_namespaces:
        yield Finding(at, "must not be empty")
    for index, name in enumerate(nodes.critical_namespaces or ()):
        if not is_dns_label(name):
            yield Finding(item(at, index), "must be the name of a namespace")


def _delay(delay: NodeAgentReconciliationDelay, path: str) -> Iterator[Finding]:
    shortest, longest = delay.min_delay or Duration(), delay.max_delay or Duration()
    for name, period in (("minDelay", shortest), ("maxDelay", longest)):
        if period < timedelta():
            yield Finding(child(path, name), "must not be negative")
    if shortest > longest:
        yield Finding(child(path, "minDelay"), "must not be greater than maxDelay")


def _webhooks(webhooks: Webhooks, path: str) -> Iterator[Finding]:
    if webhooks.kubernetes_service_host.enabled and not webhooks.kubernetes_service_host.host:
        yield Finding(child(path, "kubernetesServiceHost.host"), "is required while it is enabled")
    scheduler = webhooks.pod_scheduler_name
    if scheduler.enabled and not scheduler.scheduler_name:
        yield Finding(child(path, "podSchedulerName.schedulerName"), "must not be empty")
    token = webhooks.projected_token_mount
    if token.enabled and (token.expiration_seconds or 0) < 600:
        yield Finding(child(path, "projectedTokenMount.expirationSeconds"), "must be at least 600")
    authorizer = webhooks.node_agent_authorizer
    if authorizer.enabled and authorizer.machine_namespace == "":
        at = child(path, "nodeAgentAuthorizer.machineNamespace")
        yield Finding(at, "must be absent or not empty")
    age = webhooks.crd_deletion_protection.confirmation_maximum_age
    if age is not None:
        yield from positive(age, child(path, "crdDeletionProtection.confirmationMaximumAge"))
    system = child(path, "systemComponentsConfig")
    yield from _system_components(webhooks.system_components_config, system)


def _system_components(system: SystemComponentsConfig, path: str) -> Iterator[Finding]:
    yield from label_findings(system.node_selector, child(path, "nodeSelector"))
    yield from label_findings(system.pod_node_selector, child(path, "podNodeSelector"))
    for index, toleration in enumerate(system.pod_tolerations):
        yield from toleration_findings(toleration, item(child(path, "podTolerations"), index))


def _webhook_server(server: WebhookServer, path: str) -> Iterator[Finding]:
    own = server.self_signed
    if not own.enabled:
        return
    at = child(path, "selfSigned")
    if server.tls.server_cert_dir:
        yield Finding(
            child(at, "enabled"),
            "forbidden: there are certificates at server.webhooks.tls.serverCertDir already",
        )
    if not is_dns_label(own.namespace):
        yield Finding(child(at, "namespace"), "must be the name of a namespace")
    if own.url and not own.url.startswith("https://"):
        yield Finding(child(at, "url"), "must begin with https://")
