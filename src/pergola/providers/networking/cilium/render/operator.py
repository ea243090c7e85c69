"""The operator: what is done once for the whole cluster."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium import config_map, label_filter, ports
from pergola.providers.networking.cilium.render.checksums import CILIUM, checksum
from pergola.providers.networking.cilium.render.parts import (
    CRITICAL_COMPONENT,
    HIGH_AVAILABILITY,
    LINUX,
    ON_EVERY_NODE,
    RUNTIME_DEFAULT,
    SYSTEM_PRIORITY,
    Images,
    api_server_env,
    app,
    config_map_volume,
    disruption_budget,
    env_of_pod,
    host_port,
    http_probe,
    loopback,
    mount,
    obj,
    one_per_node,
    requests,
    service_port,
    unprivileged,
)
from pergola.providers.networking.cilium.values import Values

NAME: Final = "cilium-operator"
LABELS: Final = {"io.cilium/app": "operator", "name": NAME}
_CONFIG: Final = "/tmp/cilium/config-map"  # noqa: S108 - in the container
_NOBODY: Final = 65532


def operator(values: Values, image: Images, cilium_config: JsonObject) -> list[JsonObject]:
    """The Deployment with its budget and the Service of its metrics."""
    return [
        _deployment(values, image, cilium_config),
        disruption_budget(NAME, LABELS),
        obj(
            "v1",
            "Service",
            NAME,
            labels=LABELS,
            spec={
                "clusterIP": "None",
                "ipFamilyPolicy": "PreferDualStack",
                "selector": dict(LABELS),
                "ports": [service_port("metrics", ports.OPERATOR_METRICS, "metrics")],
            },
        ),
    ]


def _deployment(values: Values, image: Images, cilium_config: JsonObject) -> JsonObject:
    labels = {**LABELS, **app(NAME), **CRITICAL_COMPONENT}
    # With fewer than two nodes, a second replica would wait for a node forever.
    availability = {HIGH_AVAILABILITY: "controller"} if values.operator_is_ha else {}
    return obj(
        "apps/v1",
        "Deployment",
        NAME,
        labels=labels | availability,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": dict(LABELS)},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "100%"},
            },
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {CILIUM: checksum(cilium_config)},
                },
                "spec": _pod(values, image),
            },
        },
    )


def _pod(values: Values, image: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "priorityClassName": SYSTEM_PRIORITY,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "nodeSelector": LINUX,
        # It removes the taint of nodes that wait for cilium, so it cannot wait for them.
        "tolerations": list(ON_EVERY_NODE),
        "affinity": one_per_node(LABELS),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "seccompProfile": RUNTIME_DEFAULT,
        },
        "containers": [_container(values, image)],
        "volumes": [
            config_map_volume("config", config_map.NAME),
            config_map_volume("label-prefix", label_filter.NAME, defaultMode=0o444),
        ],
    }


def _container(values: Values, image: Images) -> JsonObject:
    health = {"host": loopback(values)}
    return {
        "name": NAME,
        "image": image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": ["cilium-operator-generic"],
        "args": [f"--config-dir={_CONFIG}", f"--debug={str(values.debug).lower()}"],
        "env": [
            env_of_pod("K8S_NODE_NAME", "spec.nodeName"),
            env_of_pod("CILIUM_K8S_NAMESPACE", "metadata.namespace"),
            *api_server_env(values),
        ],
        "ports": [
            host_port("metrics", ports.OPERATOR_METRICS),
            host_port("health", ports.OPERATOR_HEALTH),
        ],
        "livenessProbe": http_probe(
            "/healthz",
            ports.OPERATOR_HEALTH,
            **health,
            initialDelaySeconds=60,
            periodSeconds=10,
            timeoutSeconds=3,
        ),
        "readinessProbe": http_probe(
            "/healthz",
            ports.OPERATOR_HEALTH,
            **health,
            periodSeconds=5,
            timeoutSeconds=3,
            failureThreshold=5,
        ),
        "resources": requests("20m", "64Mi"),
        "securityContext": unprivileged(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("config", _CONFIG, readOnly=True),
            mount("label-prefix", label_filter.MOUNT, readOnly=True),
        ],
    }
