"""The configuration files of the resource managers (spec 10 §13.2, spec 20 §13, §14).

The field names are those that every release reads.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.api.resource_manager_config import API_VERSION, KIND
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import KUBE_SYSTEM
from pergola.manifests.shoot_access import KUBECONFIG_PATH

SEED_CLASS: Final = "seed"
WEBHOOK_PORT: Final = 10250
HEALTH_PORT: Final = 8081
METRICS_PORT: Final = 8080
CERTIFICATES: Final = "/etc/gardener-resource-manager-tls"

_ISSUER: Final = "gardener-system-shoot-issuer"
_PUBLIC: Final = "gardener-system-public"
_ROLE: Final = "gardener.cloud/role"
_ROLES: Final = ("shoot", "extension", "istio-system", "istio-ingress")
_HANDLER: Final = "handler.exposureclass.gardener.cloud/name"
_SYSTEM_NODES: Final = {"worker.gardener.cloud/system-components": "true"}
_WORKERS: Final = 20
_SYNC_PERIOD: Final = "1h"


def for_runtime(landscape: Landscape, name: str) -> JsonObject:
    """Return the configuration of the resource manager of the runtime cluster."""
    controllers: JsonObject = {
        "resourceClass": SEED_CLASS,
        "garbageCollector": {"enabled": True, "syncPeriod": "12h"},
        "health": {"syncPeriod": "1m"},
        "managedResource": {"concurrentSyncs": _WORKERS, "syncPeriod": _SYNC_PERIOD},
        "networkPolicy": _network_policies(landscape),
        "istioClusterConfiguration": {"enabled": True},
    }
    return {
        **_process(landscape, name),
        "controllers": controllers,
        "webhooks": _webhooks(landscape),
    }


def for_virtual(landscape: Landscape, name: str) -> JsonObject:
    """Return the configuration of the resource manager of the virtual cluster.

    The cluster has no nodes, so the controllers and webhooks for nodes and pods stay off.
    """
    more = landscape.virtual.gardener.resource_manager.additional_target_namespaces
    target = [NAMESPACE, KUBE_SYSTEM, _ISSUER, _PUBLIC, *more]
    controllers: JsonObject = {
        "garbageCollector": {"enabled": True, "syncPeriod": "12h"},
        "health": {"concurrentSyncs": 10, "syncPeriod": "1m"},
        "managedResource": {
            "concurrentSyncs": _WORKERS,
            "syncPeriod": _SYNC_PERIOD,
            "alwaysUpdate": True,
        },
        "tokenRequestor": {"enabled": True, "concurrentSyncs": 5},
    }
    return {
        **_process(landscape, name),
        "sourceClientConnection": {"namespaces": [NAMESPACE]},
        "targetClientConnection": {
            "kubeconfig": KUBECONFIG_PATH,
            "namespaces": list(dict.fromkeys(target)),
        },
        "controllers": controllers,
        "webhooks": {},
    }


def _process(landscape: Landscape, name: str) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "logLevel": landscape.log_level,
        "logFormat": landscape.log_format,
        "leaderElection": {
            "leaderElect": True,
            "resourceName": name,
            "resourceNamespace": NAMESPACE,
        },
        "server": {
            "healthProbes": {"port": HEALTH_PORT},
            "metrics": {"port": METRICS_PORT},
            "webhooks": {"port": WEBHOOK_PORT, "tls": {"serverCertDir": CERTIFICATES}},
        },
    }


def _network_policies(landscape: Landscape) -> JsonObject:
    nginx = {"app": "nginx-ingress", "component": "controller"}
    return {
        "enabled": True,
        "concurrentSyncs": _WORKERS,
        "namespaceSelectors": [
            *({"matchLabels": {_ROLE: role}} for role in _ROLES),
            {"matchExpressions": [{"key": _HANDLER, "operator": "Exists"}]},
            {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
            *landscape.network_policy_selectors,
        ],
        "ingressControllerSelector": {
            "namespace": NAMESPACE,
            "podSelector": {"matchLabels": nginx},
        },
    }


def _webhooks(landscape: Landscape) -> JsonObject:
    enabled: JsonObject = {"enabled": True}
    gates = landscape.feature_gates
    return {
        "crdDeletionProtection": enabled,
        "extensionValidation": enabled,
        "highAvailabilityConfig": {**enabled, **_tolerations(landscape)},
        "podKubeAPIServerLoadBalancing": enabled,
        "projectedTokenMount": enabled,
        "seccompProfile": {"enabled": gates.get("DefaultSeccompProfile", False)},
        "vpaInPlaceUpdates": enabled,
        "systemComponentsConfig": _system_components(landscape),
    }


def _tolerations(landscape: Landscape) -> JsonObject:
    tolerations = landscape.node_tolerations
    seconds = {
        "defaultNotReadyTolerationSeconds": tolerations.not_ready,
        "defaultUnreachableTolerationSeconds": tolerations.unreachable,
    }
    return {name: value for name, value in seconds.items() if value is not None}


def _system_components(landscape: Landscape) -> JsonObject:
    if not landscape.is_self_hosted:
        return {"enabled": False}
    return {"enabled": True, "nodeSelector": _SYSTEM_NODES, "podNodeSelector": _SYSTEM_NODES}
