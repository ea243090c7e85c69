"""Rules beyond the schema (spec 20 §3, spec 21 §1.2)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.api.component_config import at_least, check_leader_election
from pergola.api.core_v1_validation import selector_findings
from pergola.api.operator_config.controllers import ConditionThreshold, Controllers, Syncs
from pergola.api.operator_config.etcd import EtcdConfig
from pergola.api.operator_config.feature_gates import FEATURE_GATES
from pergola.api.operator_config.v1alpha1 import ClientConnection, OperatorConfiguration
from pergola.api.schema.validate import Finding, child, item, quoted

_SHORTEST_SYNC: Final = timedelta(seconds=15)


def check(config: OperatorConfiguration) -> Iterator[Finding]:
    """Yield the findings about a configuration that follows its schema and has its defaults."""
    yield from _connection(config.runtime_client_connection, "runtimeClientConnection")
    yield from _connection(config.virtual_client_connection, "virtualClientConnection")
    yield from check_leader_election(config.leader_election, "leaderElection")
    yield from _feature_gates(config.feature_gates, "featureGates")
    yield from _controllers(config.controllers, "controllers")


def _connection(connection: ClientConnection, path: str) -> Iterator[Finding]:
    if connection.qps is not None and connection.qps < 0:
        yield Finding(child(path, "qps"), "must not be negative")


def _feature_gates(configured: dict[str, bool], path: str) -> Iterator[Finding]:
    for name, value in configured.items():
        gate = FEATURE_GATES.get(name)
        if gate is None:
            known = quoted(FEATURE_GATES)
            yield Finding(item(path, name), f"is not a known feature gate; these are: {known}")
        elif gate.is_locked and value != gate.default:
            only = str(gate.default).lower()
            yield Finding(item(path, name), f"cannot be changed: it is locked to {only}")


def _controllers(controllers: Controllers, path: str) -> Iterator[Finding]:
    with_workers: dict[str, Syncs] = {
        "garden": controllers.garden,
        "gardenletDeployer": controllers.gardenlet_deployer,
        "networkPolicy": controllers.network_policy,
        "vpaEvictionRequirements": controllers.vpa_eviction_requirements,
        "extension": controllers.extension,
        "extensionCare": controllers.extension_care,
        "extensionReference": controllers.extension_reference,
        "extensionRequiredRuntime": controllers.extension_required_runtime,
        "extensionRequiredVirtual": controllers.extension_required_virtual,
    }
    for name, controller in with_workers.items():
        if controller.concurrent_syncs < 1:
            yield Finding(f"{path}.{name}.concurrentSyncs", "must be at least 1")
    periods = {
        "garden": controllers.garden.sync_period,
        "gardenCare": controllers.garden_care.sync_period,
        "extensionCare": controllers.extension_care.sync_period,
    }
    for name, period in periods.items():
        yield from at_least(period, _SHORTEST_SYNC, f"{path}.{name}.syncPeriod")
    yield from _thresholds(controllers.garden_care.condition_thresholds, f"{path}.gardenCare")
    yield from _thresholds(controllers.extension_care.condition_thresholds, f"{path}.extensionCare")
    selectors = child(child(path, "networkPolicy"), "additionalNamespaceSelectors")
    for index, selector in enumerate(controllers.network_policy.additional_namespace_selectors):
        yield from selector_findings(selector, item(selectors, index))
    yield from _etcd(controllers.garden.etcd_config, f"{path}.garden.etcdConfig")


def _thresholds(thresholds: list[ConditionThreshold], path: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, threshold in enumerate(thresholds):
        at = item(child(path, "conditionThresholds"), index)
        if threshold.duration < timedelta():
            yield Finding(child(at, "duration"), "must not be negative")
        if threshold.type in seen:
            yield Finding(child(at, "type"), "is there already")
        seen.add(threshold.type)


def _etcd(config: EtcdConfig, path: str) -> Iterator[Finding]:
    workers = {
        "etcdController": config.etcd_controller.workers,
        "custodianController": config.custodian_controller.workers,
        "backupCompactionController": config.backup_compaction_controller.workers,
    }
    for name, count in workers.items():
        if count < 0:
            yield Finding(f"{path}.{name}.workers", "must not be negative")
    period = config.delta_snapshot_retention_period
    if period is not None and period < timedelta():
        yield Finding(child(path, "deltaSnapshotRetentionPeriod"), "must not be negative")
