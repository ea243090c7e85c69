"""The proxy for policies of layer 7, apart from the agent so that it survives its restarts."""

import hashlib
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.manifests import (
    HEADLESS,
    KUBE_SYSTEM,
    LINUX,
    ON_EVERY_NODE,
    RUNTIME_DEFAULT,
    TOLERATE_EVERYTHING,
    Images,
    capable,
    config_map_volume,
    host_path,
    host_port,
    mount,
    requests,
    selector,
    service_account,
    service_port,
)
from pergola.providers.networking.cilium import ports
from pergola.providers.networking.cilium.render.agent_volumes import ENVOY_SOCKETS
from pergola.providers.networking.cilium.render.envoy_bootstrap import bootstrap
from pergola.providers.networking.cilium.render.pods import (
    CRITICAL,
    app,
    dual_stack_service,
    identity_env,
    in_kube_system,
    local_probe,
    scraped,
)
from pergola.providers.networking.cilium.values import Values

NAME: Final = "cilium-envoy"
CONFIG: Final = "cilium-envoy-config"
SELECTOR: Final = {"k8s-app": NAME}
_FOLDER: Final = "/var/run/cilium/envoy"
_FILE: Final = "bootstrap-config.json"


def envoy(values: Values, image: Images) -> list[JsonObject]:
    """Return the DaemonSet, its configuration and identity, and the Service of its metrics."""
    text = orjson.dumps(bootstrap(values), option=orjson.OPT_SORT_KEYS).decode()
    return [
        service_account(NAME, KUBE_SYSTEM),
        in_kube_system("v1", "ConfigMap", CONFIG, data={_FILE: text}),
        _daemon_set(values, image, hashlib.sha256(text.encode()).hexdigest()),
        dual_stack_service(
            NAME,
            SELECTOR,
            service_port("envoy-metrics", ports.ENVOY_METRICS, "envoy-metrics"),
            labels={**app(NAME), "io.cilium/app": "proxy"},
            annotations=scraped(ports.ENVOY_METRICS),
            **HEADLESS,
        ),
    ]


def _daemon_set(values: Values, image: Images, checksum: str) -> JsonObject:
    labels = {**app(NAME), **CRITICAL}
    annotations = {"checksum/configmap-envoy": checksum}
    return in_kube_system(
        "apps/v1",
        "DaemonSet",
        NAME,
        labels=labels,
        spec={
            "revisionHistoryLimit": 2,
            "selector": selector(SELECTOR),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": _pod(values, image),
            },
        },
    )


def _pod(values: Values, image: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "restartPolicy": "Always",
        "priorityClassName": ON_EVERY_NODE,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": LINUX,
        "tolerations": list(TOLERATE_EVERYTHING),
        "securityContext": {
            "seccompProfile": RUNTIME_DEFAULT,
            "appArmorProfile": {"type": "Unconfined"},
        },
        "containers": [_container(values, image)],
        "volumes": [
            host_path("envoy-sockets", ENVOY_SOCKETS, "DirectoryOrCreate"),
            host_path("envoy-artifacts", f"{_FOLDER}/artifacts", "DirectoryOrCreate"),
            host_path("bpf-maps", "/sys/fs/bpf", "DirectoryOrCreate"),
            config_map_volume("envoy-config", CONFIG, defaultMode=0o400),
        ],
    }


def _container(values: Values, image: Images) -> JsonObject:
    return {
        "name": NAME,
        "image": image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/cilium-envoy-starter"],
        "args": [
            "--",
            "-c",
            f"{_FOLDER}/{_FILE}",
            "--base-id",
            "0",
            "--log-level",
            "debug" if values.debug else "info",
        ],
        "env": identity_env(),
        "ports": [host_port("envoy-metrics", ports.ENVOY_METRICS)],
        "startupProbe": _probe(values, failureThreshold=105, periodSeconds=2),
        "livenessProbe": _probe(values, failureThreshold=10, periodSeconds=30, timeoutSeconds=5),
        "readinessProbe": _probe(values, failureThreshold=3, periodSeconds=30, timeoutSeconds=5),
        "resources": requests(cpu="20m", memory="200Mi"),
        "securityContext": capable("NET_ADMIN", "SYS_ADMIN", escalates=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("envoy-sockets", ENVOY_SOCKETS),
            mount("envoy-artifacts", f"{_FOLDER}/artifacts", readOnly=True),
            mount("envoy-config", f"{_FOLDER}/", readOnly=True),
            mount("bpf-maps", "/sys/fs/bpf", mountPropagation="HostToContainer"),
        ],
    }


def _probe(values: Values, **timing: int) -> JsonObject:
    return local_probe(values, ports.ENVOY_HEALTH, **timing)
