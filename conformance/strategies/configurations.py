"""Configuration files with every setting of the original."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.changes import changed
from pergola.api.objects import JsonObject

_CONNECTION: Final = {
    "kubeconfig": "/a",
    "acceptContentTypes": "application/json",
    "contentType": "application/json",
    "qps": 100,
    "burst": 130,
}
_WATCHED: Final = {**_CONNECTION, "namespaces": ["n"], "cacheResyncPeriod": "24h"}
_SELECTOR: Final = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["d"]},
        {"key": "e", "operator": "Exists"},
    ],
}
_PROCESS: Final = {
    "leaderElection": {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceNamespace": "garden",
        "resourceName": "lock",
    },
    "logLevel": "info",
    "logFormat": "text",
    "debugging": {"enableProfiling": False, "enableContentionProfiling": False},
}
_SERVER: Final = {"bindAddress": "10.0.0.1", "port": 2751}
RESOURCE_MANAGER: Final[JsonObject] = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "sourceClientConnection": _WATCHED,
    "targetClientConnection": _WATCHED,
    **_PROCESS,
    "server": {
        "webhooks": {**_SERVER, "tls": {"serverCertDir": "/certificates"}},
        "healthProbes": _SERVER,
        "metrics": _SERVER,
    },
    "controllers": {
        "clusterID": "cluster",
        "resourceClass": "class",
        "cacheSyncTimeout": "2m",
        "garbageCollector": {"enabled": True, "syncPeriod": "1h"},
        "health": {"concurrentSyncs": 5, "syncPeriod": "1m"},
        "csrApprover": {"enabled": True, "concurrentSyncs": 1, "machineNamespace": "n"},
        "managedResource": {
            "concurrentSyncs": 5,
            "syncPeriod": "1m",
            "alwaysUpdate": False,
            "managedByLabelValue": "gardener",
        },
        "networkPolicy": {
            "enabled": True,
            "concurrentSyncs": 5,
            "namespaceSelectors": [_SELECTOR],
            "ingressControllerSelector": {"namespace": "n", "podSelector": _SELECTOR},
        },
        "istioClusterConfiguration": {"enabled": True, "concurrentSyncs": 5},
        "nodeCriticalComponents": {"enabled": True, "concurrentSyncs": 5, "backoff": "10s"},
        "nodeAgentReconciliationDelay": {"enabled": True, "minDelay": "0s", "maxDelay": "5m"},
        "tokenRequestor": {"enabled": True, "concurrentSyncs": 5},
    },
    "webhooks": {
        "crdDeletionProtection": {"enabled": True},
        "extensionValidation": {"enabled": True},
        "highAvailabilityConfig": {
            "enabled": True,
            "defaultNotReadyTolerationSeconds": 60,
            "defaultUnreachableTolerationSeconds": 60,
        },
        "kubernetesServiceHost": {"enabled": True, "host": "api.example.com"},
        "podKubeAPIServerLoadBalancing": {"enabled": False},
        "podSchedulerName": {"enabled": True, "schedulerName": "scheduler"},
        "podTopologySpreadConstraints": {"enabled": True},
        "projectedTokenMount": {"enabled": True, "expirationSeconds": 43200},
        "seccompProfile": {"enabled": True},
        "systemComponentsConfig": {
            "enabled": True,
            "nodeSelector": {"a": "b"},
            "podNodeSelector": {"a": "b"},
            "podTolerations": [
                {"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"},
                {"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
        },
        "nodeAgentAuthorizer": {
            "enabled": True,
            "machineNamespace": "n",
            "authorizeWithSelectors": False,
        },
        "vpaInPlaceUpdates": {"enabled": False},
    },
}
"""The resource manager's, with every controller and most webhooks."""
_THRESHOLDS: Final = [
    {"type": "RuntimeComponentsHealthy", "duration": "1m"},
    {"type": "VirtualComponentsHealthy", "duration": "2m"},
]
_WORKERS: Final = {"concurrentSyncs": 5}
OPERATOR: Final[JsonObject] = {
    "apiVersion": "operator.config.gardener.cloud/v1alpha1",
    "kind": "OperatorConfiguration",
    "runtimeClientConnection": _CONNECTION,
    "virtualClientConnection": _CONNECTION,
    **_PROCESS,
    "server": {"webhooks": _SERVER, "healthProbes": _SERVER, "metrics": _SERVER},
    "featureGates": {"DefaultSeccompProfile": True},
    "controllers": {
        "garden": {
            "concurrentSyncs": 1,
            "syncPeriod": "1h",
            "etcdConfig": {
                "etcdController": {"workers": 3},
                "custodianController": {"workers": 3},
                "backupCompactionController": {
                    "workers": 3,
                    "enableBackupCompaction": False,
                    "eventsThreshold": 1000,
                    "activeDeadlineDuration": "3h",
                    "metricsScrapeWaitDuration": "60s",
                },
                "backupLeaderElection": {
                    "reelectionPeriod": "5s",
                    "etcdConnectionTimeout": "5s",
                },
                "featureGates": {"UpgradeEtcdVersion": False},
                "deltaSnapshotRetentionPeriod": "48h",
            },
        },
        "gardenCare": {"syncPeriod": "1m", "conditionThresholds": _THRESHOLDS},
        "gardenletDeployer": _WORKERS,
        "networkPolicy": {**_WORKERS, "additionalNamespaceSelectors": [_SELECTOR]},
        "vpaEvictionRequirements": _WORKERS,
        "extension": _WORKERS,
        "extensionCare": {
            **_WORKERS,
            "syncPeriod": "1m",
            "conditionThresholds": [{"type": "ControllerInstallationsHealthy", "duration": "1m"}],
        },
        "extensionReference": _WORKERS,
        "extensionRequiredRuntime": _WORKERS,
        "extensionRequiredVirtual": _WORKERS,
    },
    "nodeToleration": {
        "defaultNotReadyTolerationSeconds": 60,
        "defaultUnreachableTolerationSeconds": 60,
    },
}
"""The operator's."""
GATES: Final = (
    *("BackupEntryForGarden", "DisableNginxIngressInGarden", "DoNotCopyBackupCredentials", "HVPA"),
    *("IstioTLSTermination", "OpenTelemetryCollector", "PrometheusHealthChecks", "RemoveVali"),
    *("VictoriaLogsBackend", "InPlaceNodeUpdates", "RemoveHTTPProxyLegacyPort", "AllAlpha"),
    *("Unknown", ""),
)
_TEXTS: Final = (
    *("debug", "info", "error", "warn", "json", "text", "leases", "configmaps", "*", "a:b"),
    *("0s", "1s", "2s", "5s", "9s", "10s", "14s", "15s", "12s", "1m", "1h", "-1s", "1h30m", "s"),
    *("1.5h", "100ms", "-0s", "9999999h", "In", "NotIn", "DoesNotExist", "Equal", "Exists"),
    *("NoSchedule", "PreferNoSchedule", "NoExecute", "Lt", "RuntimeComponentsHealthy"),
)


def configurations(base: JsonObject) -> SearchStrategy[JsonObject]:
    """Return files with a few odd values; some have a few sections only."""
    connections = [name for name in base if name.endswith("ClientConnection")]
    # The original has less precise numbers.
    kept = [("featureGates",), *((name, "qps") for name in connections)]
    texts = changed(base, most=4, texts=_TEXTS, keep=kept)
    rates = st.none() | st.tuples(
        st.sampled_from(connections), st.sampled_from([-1, 0, 0.5, 10, 1000])
    )
    names = [name for name in base if name not in ("apiVersion", "kind")]
    removed = st.lists(st.sampled_from(names), max_size=3)
    gates: SearchStrategy[Any] = st.none()
    if "featureGates" in base:
        gates |= st.dictionaries(st.sampled_from(GATES), st.booleans(), max_size=2)
    return st.builds(_with, texts, removed, gates, rates)


def _with(
    obj: JsonObject, removed: list[str], gates: Any, rate: tuple[str, float] | None
) -> JsonObject:
    found = {name: value for name, value in obj.items() if name not in removed}
    if rate is not None:
        found[rate[0]] = {**found.get(rate[0], {}), "qps": rate[1]}
    return found if gates is None else {**found, "featureGates": gates}
