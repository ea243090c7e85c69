"""Typha, which fans out a few watches of the API server to all nodes (spec 40 §5.5)."""

from typing import Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.manifests import (
    KUBE_SYSTEM,
    RUNTIME_DEFAULT,
    SYSTEM_PRIORITY,
    Images,
    disruption_budget,
    env,
    http_probe,
    manifest,
    port,
    restricted,
    selector,
    service,
    service_port,
)
from pergola.manifests.labels import SYSTEM_COMPONENT
from pergola.providers.networking.calico.render.conventions import (
    EGRESS,
    ENDPOINT_OVERRIDE,
    EVERYWHERE,
    GARDENER,
    preserved,
)
from pergola.providers.networking.calico.render.node_environment import api_server
from pergola.providers.networking.calico.values import Values

NAME: Final = "calico-typha"
DEPLOYMENT: Final = "calico-typha-deploy"
PORT: Final = 5473
METRICS: Final = 9093
HEALTH: Final = 9098
_LABELS: Final = {"k8s-app": NAME}
_GRACE: Final = 300  # time for connections to move to other replicas
_NOBODY: Final = 65534
_REQUESTS: Final = {"cpu": "200m", "memory": "100Mi"}


def typha_objects(values: Values, images: Images) -> list[JsonObject]:
    """Return the objects of Typha, and always the NetworkPolicy for its port."""
    policy = _network_policy()
    if not values.typha:
        return [policy]
    return [
        _deployment(values, images),
        service(NAME, KUBE_SYSTEM, _LABELS, service_port(NAME, PORT, NAME), labels=_LABELS),
        service("calico-typha-monitoring", KUBE_SYSTEM, _LABELS, service_port("metrics", METRICS)),
        disruption_budget(NAME, KUBE_SYSTEM, _LABELS),
        policy,
    ]


def _deployment(values: Values, images: Images) -> JsonObject:
    labels = {**_LABELS, **SYSTEM_COMPONENT}
    strategy = {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 1}, "type": "RollingUpdate"}
    spec: JsonObject = {  # no replicas: the horizontal autoscaler sets them
        "revisionHistoryLimit": 2,
        "selector": selector(_LABELS),
        "strategy": strategy,
        "template": {
            "metadata": {
                "labels": {**labels, **GARDENER, **EGRESS},
                "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
            },
            "spec": _pod(values, images),
        },
    }
    return manifest(
        "apps/v1",
        "Deployment",
        DEPLOYMENT,
        namespace=KUBE_SYSTEM,
        labels=labels,
        annotations=preserved(values.auto_scaling),
        spec=spec,
    )


def _pod(values: Values, images: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "priorityClassName": SYSTEM_PRIORITY,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": _GRACE,
        "tolerations": list(EVERYWHERE),
        "securityContext": {
            "seccompProfile": RUNTIME_DEFAULT,
            "runAsUser": _NOBODY,
            "fsGroup": _NOBODY,
            "supplementalGroups": [1],
        },
        "containers": [_container(values, images)],
    }


def _container(values: Values, images: Images) -> JsonObject:
    return {
        "name": NAME,
        "image": images("calico-typha"),
        "envFrom": list(ENDPOINT_OVERRIDE),
        "env": [*api_server(values), *_environment(values)],
        "ports": [
            port(NAME, PORT),
            port("metrics", METRICS),
        ],
        "livenessProbe": _probe("/liveness", periodSeconds=30, initialDelaySeconds=30),
        "readinessProbe": _probe("/readiness", periodSeconds=10),
        "resources": {"requests": _requests(values)},
        "securityContext": {**restricted(read_only_root=False), "runAsNonRoot": True},
    }


def _environment(values: Values) -> list[JsonObject]:
    return env(
        USE_POD_CIDR="true" if values.ipam.type == "host-local" else None,
        TYPHA_DATASTORETYPE="kubernetes",
        TYPHA_LOGSEVERITYSCREEN="info",
        TYPHA_LOGFILEPATH="none",
        TYPHA_LOGSEVERITYSYS="none",
        TYPHA_CONNECTIONREBALANCINGMODE="kubernetes",
        TYPHA_HEALTHENABLED="true",
        TYPHA_PROMETHEUSMETRICSENABLED="true",
        TYPHA_PROMETHEUSMETRICSPORT=str(METRICS),
        TYPHA_SHUTDOWNTIMEOUTSECS=str(_GRACE),
    )


def _requests(values: Values) -> dict[str, JsonValue]:
    given = values.resources.get("typha", {}) if values.auto_scaling == "static" else {}
    return {**_REQUESTS, **given}


def _probe(path: str, **more: JsonValue) -> JsonObject:
    return http_probe(path, HEALTH, host="localhost", timeoutSeconds=10, **more)


def _network_policy() -> JsonObject:
    spec: JsonObject = {
        "podSelector": selector(_LABELS),
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [{"podSelector": {"matchLabels": {"k8s-app": "calico-node"}}}],
                "ports": [{"port": PORT, "protocol": "TCP"}],
            }
        ],
    }
    description = f"Allows calico-node to reach Typha at port {PORT}."
    return manifest(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "gardener.cloud--allow-from-calico-node",
        namespace=KUBE_SYSTEM,
        labels=GARDENER,
        annotations={"gardener.cloud/description": description},
        spec=spec,
    )
