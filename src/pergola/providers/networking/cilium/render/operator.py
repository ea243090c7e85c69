"""The operator, which performs tasks once per cluster."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    HEADLESS,
    LINUX,
    SYSTEM_PRIORITY,
    TOLERATE_EVERYTHING,
    Images,
    config_map_volume,
    disruption_budget,
    flag,
    host_port,
    mount,
    non_root,
    requests,
    restricted,
    selector,
    service_port,
    spread,
)
from pergola.manifests.labels import HIGH_AVAILABILITY
from pergola.manifests.objects import KUBE_SYSTEM
from pergola.providers.networking.cilium import config_map, label_filter, ports
from pergola.providers.networking.cilium.render.checksums import CILIUM, checksum
from pergola.providers.networking.cilium.render.pods import (
    CONFIG_MOUNT,
    CRITICAL,
    api_server_env,
    app,
    dual_stack_service,
    identity_env,
    in_kube_system,
    local_probe,
    scraped,
)
from pergola.providers.networking.cilium.values import Values

NAME: Final = "cilium-operator"
LABELS: Final = {"io.cilium/app": "operator", "name": NAME}
_USER: Final = 65532


def operator(values: Values, image: Images, cilium_config: JsonObject) -> list[JsonObject]:
    """Return the Deployment, its disruption budget and the Service of its metrics."""
    return [
        _deployment(values, image, cilium_config),
        disruption_budget(NAME, KUBE_SYSTEM, LABELS),
        dual_stack_service(
            NAME,
            LABELS,
            service_port("metrics", ports.OPERATOR_METRICS, "prometheus"),
            labels=LABELS,
            **HEADLESS,
        ),
    ]


def _deployment(values: Values, image: Images, cilium_config: JsonObject) -> JsonObject:
    labels = {**LABELS, **app(NAME), **CRITICAL}
    # With fewer than two nodes, a second replica would wait for a node forever.
    availability = {HIGH_AVAILABILITY: "controller"} if values.operator_is_ha else {}
    annotations = {CILIUM: checksum(cilium_config), **scraped(ports.OPERATOR_METRICS)}
    return in_kube_system(
        "apps/v1",
        "Deployment",
        NAME,
        labels=labels | availability,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(LABELS),
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1},
            },
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": _pod(values, image),
            },
        },
    )


def _pod(values: Values, image: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "priorityClassName": SYSTEM_PRIORITY,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "nodeSelector": LINUX,
        # It removes the taint of nodes that wait for cilium, so it cannot wait for them.
        "tolerations": list(TOLERATE_EVERYTHING),
        "affinity": spread(LABELS),
        "securityContext": non_root(_USER),
        "containers": [_container(values, image)],
        "volumes": [
            config_map_volume("config", config_map.NAME),
            config_map_volume("label-prefix", label_filter.NAME, defaultMode=0o444),
        ],
    }


def _container(values: Values, image: Images) -> JsonObject:
    return {
        "name": NAME,
        "image": image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": ["cilium-operator-generic"],
        "args": [f"--config-dir={CONFIG_MOUNT}", f"--debug={flag(values.debug)}"],
        "env": [*identity_env(), *api_server_env(values)],
        "ports": [
            host_port("prometheus", ports.OPERATOR_METRICS),
            host_port("health", ports.OPERATOR_HEALTH),
        ],
        "livenessProbe": _probe(values, initialDelaySeconds=60, periodSeconds=10, timeoutSeconds=3),
        "readinessProbe": _probe(values, periodSeconds=5, timeoutSeconds=3, failureThreshold=5),
        "resources": requests(cpu="20m", memory="150Mi"),
        "securityContext": restricted(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("config", CONFIG_MOUNT, readOnly=True),
            mount("label-prefix", label_filter.MOUNT, readOnly=True),
        ],
    }


def _probe(values: Values, **timing: int) -> JsonObject:
    return local_probe(values, ports.OPERATOR_HEALTH, **timing)
