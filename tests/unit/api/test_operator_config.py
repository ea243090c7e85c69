"""The operator's configuration file: spec 20 §3, spec 21 §1.2."""

from datetime import timedelta
from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_config import (
    ConfigurationInvalid,
    OperatorConfiguration,
    configuration_from,
    feature_gates_of,
)
from tests.support.gardens import with_values

HEADER: JsonObject = {
    "apiVersion": "operator.config.gardener.cloud/v1alpha1",
    "kind": "OperatorConfiguration",
}


def loaded(values: dict[str, Any]) -> OperatorConfiguration:
    return configuration_from(with_values(HEADER, values)).config


def findings(values: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigurationInvalid) as raised:
        loaded(values)
    return [str(finding) for finding in raised.value.findings]


def test_an_empty_configuration_has_the_originals_defaults() -> None:
    config = loaded({})
    etcd = config.controllers.garden.etcd_config
    compaction = etcd.backup_compaction_controller

    assert (config.runtime_client_connection.qps, config.runtime_client_connection.burst) == (
        100,
        130,
    )
    assert config.virtual_client_connection.qps == 100
    assert config.leader_election.resource_name == "gardener-operator-leader-election"
    assert config.leader_election.resource_namespace == "garden"
    assert (config.log_level, config.log_format) == ("info", "json")
    assert config.server.webhooks.port == 2750
    assert config.server.health_probes.port == 2751
    assert config.server.metrics.port == 2752
    assert config.controllers.garden.concurrent_syncs == 1
    assert config.controllers.garden.sync_period == timedelta(hours=1)
    assert config.controllers.garden_care.sync_period == timedelta(minutes=1)
    assert config.controllers.extension.concurrent_syncs == 5
    assert config.controllers.gardenlet_deployer.concurrent_syncs == 1
    assert (etcd.etcd_controller.workers, etcd.custodian_controller.workers) == (50, 10)
    assert (compaction.workers, compaction.enable_backup_compaction) == (3, False)
    assert compaction.events_threshold == 1_000_000
    assert compaction.active_deadline_duration == timedelta(hours=3)
    assert compaction.metrics_scrape_wait_duration == timedelta(minutes=1)
    assert config.node_toleration.default_not_ready_toleration_seconds is None


def test_zero_and_empty_values_get_the_defaults() -> None:
    config = loaded(
        {
            "runtimeClientConnection": {"qps": 0, "burst": 0},
            "leaderElection": {"resourceName": "", "resourceNamespace": "", "resourceLock": ""},
        }
    )

    assert config.runtime_client_connection.qps == 100
    assert config.runtime_client_connection.burst == 130
    assert config.leader_election.resource_name == "gardener-operator-leader-election"


def test_every_field_of_the_charts_configuration_is_read() -> None:
    config = loaded(
        {
            "featureGates": {"DefaultSeccompProfile": True, "HVPA": False},
            "debugging": {"enableProfiling": True, "enableContentionProfiling": True},
            "controllers": {
                "garden": {
                    "etcdConfig": {
                        "backupLeaderElection": {
                            "reelectionPeriod": "1s",
                            "etcdConnectionTimeout": "2s",
                        },
                        "featureGates": {"UseEtcdWrapper": True},
                        "deltaSnapshotRetentionPeriod": "360h",
                    }
                },
                "gardenCare": {
                    "conditionThresholds": [{"type": "RuntimeComponentsHealthy", "duration": "1m"}]
                },
                "networkPolicy": {
                    "concurrentSyncs": 5,
                    "additionalNamespaceSelectors": [{"matchLabels": {"a": "b"}}],
                },
            },
            "nodeToleration": {
                "defaultNotReadyTolerationSeconds": 60,
                "defaultUnreachableTolerationSeconds": 60,
            },
        }
    )

    etcd = config.controllers.garden.etcd_config
    assert etcd.delta_snapshot_retention_period == timedelta(hours=360)
    assert etcd.backup_leader_election is not None
    assert config.node_toleration.default_unreachable_toleration_seconds == 60
    assert feature_gates_of(config.feature_gates)["DefaultSeccompProfile"] is True
    assert feature_gates_of(config.feature_gates)["IstioTLSTermination"] is True


MINIMUM = [
    "garden",
    "gardenletDeployer",
    "networkPolicy",
    "vpaEvictionRequirements",
    "extension",
    "extensionCare",
    "extensionReference",
    "extensionRequiredRuntime",
    "extensionRequiredVirtual",
]
WRONG: list[tuple[dict[str, Any], list[str]]] = [
    ({"kind": "Other"}, ['kind: must be "OperatorConfiguration"']),
    (
        {"controllers.gardenn": {}},
        [('controllers.gardenn: is not a known field and has no effect; did you mean "garden"?')],
    ),
    (
        {"controllers.gardenCare.syncPeriod": "14s"},
        ["controllers.gardenCare.syncPeriod: must be at least 15s"],
    ),
    (
        {"controllers.garden.syncPeriod": "14s"},
        ["controllers.garden.syncPeriod: must be at least 15s"],
    ),
    (
        {"controllers.extensionCare.syncPeriod": "14s"},
        ["controllers.extensionCare.syncPeriod: must be at least 15s"],
    ),
    (
        {f"controllers.{name}.concurrentSyncs": 0 for name in MINIMUM},
        [f"controllers.{name}.concurrentSyncs: must be at least 1" for name in MINIMUM],
    ),
    (
        {
            "controllers.gardenCare.conditionThresholds": [
                {"type": "A", "duration": "-1s"},
                {"type": "A", "duration": "1s"},
            ]
        },
        [
            "controllers.gardenCare.conditionThresholds[0].duration: must not be negative",
            "controllers.gardenCare.conditionThresholds[1].type: is there already",
        ],
    ),
    (
        {
            "controllers.garden.etcdConfig": {
                "deltaSnapshotRetentionPeriod": "-1s",
                "etcdController": {"workers": -1},
            }
        },
        [
            "controllers.garden.etcdConfig.etcdController.workers: must not be negative",
            "controllers.garden.etcdConfig.deltaSnapshotRetentionPeriod: must not be negative",
        ],
    ),
    ({"logLevel": "loud"}, ['logLevel: must be one of "debug", "error", "info"']),
    ({"logFormat": "xml"}, ['logFormat: must be one of "json", "text"']),
    ({"runtimeClientConnection.qps": -1}, ["runtimeClientConnection.qps: must not be negative"]),
    (
        {"virtualClientConnection.burst": -1},
        ["virtualClientConnection.burst: must be at least 0"],
    ),
    (
        {"leaderElection.leaseDuration": "1s"},
        ["leaderElection.leaseDuration: must be greater than renewDeadline"],
    ),
    (
        {"nodeToleration.defaultNotReadyTolerationSeconds": -1},
        ["nodeToleration.defaultNotReadyTolerationSeconds: must be at least 0"],
    ),
    (
        {"featureGates": {"DoNotCopyBackupCredentials": False}},
        ["featureGates[DoNotCopyBackupCredentials]: cannot be changed: it is locked to true"],
    ),
]


@pytest.mark.parametrize(("values", "expected"), WRONG)
def test_every_error_is_reported_with_its_path(values: dict[str, Any], expected: list[str]) -> None:
    assert findings(values) == expected


def test_the_error_about_an_unknown_feature_gate_lists_the_known_ones() -> None:
    [finding] = findings({"featureGates": {"Nothing": True}})

    assert finding.startswith(
        'featureGates[Nothing]: is not a known feature gate; these are: "BackupEntryForGarden", '
    )


def test_a_selector_of_namespaces_is_valid() -> None:
    selectors = [{"matchLabels": {"a b": "c"}}]

    [finding] = findings({"controllers.networkPolicy.additionalNamespaceSelectors": selectors})

    assert finding.startswith(
        "controllers.networkPolicy.additionalNamespaceSelectors[0].matchLabels[a b]: must be"
    )
