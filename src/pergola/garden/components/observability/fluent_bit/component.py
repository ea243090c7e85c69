"""fluent-bit on every node of the runtime cluster."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import (
    SEED_SCRAPES,
    TO_DNS,
    TO_RUNTIME_API_SERVER,
    to_service,
)
from pergola.garden.components.monitoring import (
    AGGREGATE,
    POD_LABELS,
    endpoint,
    job,
    kept_metrics,
    rule_file,
    service_monitor,
)
from pergola.garden.components.observability.conventions import managed
from pergola.garden.components.observability.fluent_bit.pipeline import (
    SCRIPTS_NAME,
    pipeline,
    scripts,
)
from pergola.garden.components.observability.fluent_bit.resources import API, SELECTED, STATE
from pergola.garden.components.observability.fluent_operator import granted_to_fluent_bit
from pergola.garden.components.observability.opentelemetry_collector import (
    PORT as COLLECTOR_PORT,
)
from pergola.garden.components.observability.opentelemetry_collector import (
    SERVICE as COLLECTOR,
)
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import empty_dir, host_path, manifest, mount, port, selector

NAME: Final = "fluent-bit"

_OBJECT: Final = "fluent-bit-c6dcd"
"""The name of the FluentBit and its DaemonSet. The DaemonSet's selector is immutable and follows
from the labels below: other labels require another name."""
_LABELS: Final = {
    "app": NAME,
    "role": "logging",
    "gardener.cloud/role": "logging",
    **TO_DNS,
    **TO_RUNTIME_API_SERVER,
    **to_service(COLLECTOR, COLLECTOR_PORT),
    **to_service(f"all-shoots-{COLLECTOR}", COLLECTOR_PORT),
}
_CONFIG: Final = "fluent-bit-config"
_PLUGIN: Final = "fluent-bit-plugin"
_PLUGINS: Final = "plugins"
_JOURNAL: Final = "/run/log/journal"
_HTTP_PORT: Final = 2020
_PLUGIN_PORT: Final = 2021
_UNPRIVILEGED: Final = {"allowPrivilegeEscalation": False}
_OPENED: Final = '[{"port":2020,"protocol":"TCP"},{"port":2021,"protocol":"TCP"}]'
_METRICS: Final = (
    "fluentbit_(input|output|filter)_.+_total",
    "fluentbit_input_storage_.+",
    "fluentbit_storage_.+",
    "fluentbit_uptime",
)
_PLUGIN_METRICS: Final = (
    "fluentbit_gardener_.+",
    "fluentbit_vali_gardener_.+",
    "dque_.+",
    "output_plugin_.+",
    "otel_sdk_.+",
    "go_(gc_duration_seconds.*|goroutines|memstats_.+)",
    "process_.+",
    "target_info",
)


def render(landscape: Landscape) -> Rendered:
    """Return fluent-bit, its configuration, and its ServiceMonitors and alerts."""
    objects = (
        manifest("v1", "ConfigMap", SCRIPTS_NAME, namespace=NAMESPACE, data=scripts()),
        _fluent_bit(landscape),
        _config(),
        *pipeline(),
        *_monitoring(),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _fluent_bit(landscape: Landscape) -> JsonObject:
    return manifest(
        API,
        "FluentBit",
        _OBJECT,
        namespace=NAMESPACE,
        labels=_LABELS,
        spec={
            "fluentBitConfigName": _CONFIG,
            "image": landscape.image(NAME),
            "priorityClassName": P100,
            "command": [
                "/fluent-bit/bin/fluent-bit-watcher",
                "-e",
                "/fluent-bit/plugins/output_plugin.so",
                "-c",
                "/fluent-bit/config/fluent-bit.conf",
            ],
            "envVars": [{"name": "OTEL_GO_X_OBSERVABILITY", "value": "true"}],
            "ports": [port("metrics-plugin", _PLUGIN_PORT)],
            "containerSecurityContext": _UNPRIVILEGED,
            "resources": {
                "requests": {"cpu": "150m", "memory": "200Mi"},
                "limits": {"memory": "1Gi"},
            },
            "rbacRules": granted_to_fluent_bit(),
            "service": {
                "name": NAME,
                "labels": _LABELS,
                "annotations": {SEED_SCRAPES: _OPENED},
            },
            **_probes(),
            **_placement(),
            **_volumes(landscape),
        },
    )


def _probes() -> JsonObject:
    alive = {"path": "/healthz", "port": _PLUGIN_PORT}
    ready = {"path": "/api/v1/metrics/prometheus", "port": _HTTP_PORT}
    return {
        "livenessProbe": {"httpGet": alive, "initialDelaySeconds": 120, "periodSeconds": 60},
        "readinessProbe": {"httpGet": ready, "periodSeconds": 10},
    }


def _placement() -> JsonObject:
    roles = ("master", "control-plane")
    keys = [f"node-role.kubernetes.io/{role}" for role in roles]
    return {"tolerations": [{"key": key, "effect": "NoSchedule"} for key in keys]}


def _volumes(landscape: Landscape) -> JsonObject:
    """Return the volumes, and the init container that copies the output plugin to one of them."""
    install: JsonObject = {
        "name": "install-plugin",
        "image": landscape.image(_PLUGIN),
        "command": ["cp", "/source/plugins/.", "/plugins"],
        "securityContext": _UNPRIVILEGED,
        "volumeMounts": [mount(_PLUGINS, "/plugins")],
    }
    return {
        "initContainers": [install],
        "volumes": [
            host_path("runlogjournal", _JOURNAL),
            host_path("varfluent", STATE),
            empty_dir(_PLUGINS),
        ],
        "volumesMounts": [
            mount("runlogjournal", _JOURNAL),
            mount("varfluent", STATE),
            mount(_PLUGINS, "/fluent-bit/plugins"),
        ],
    }


def _config() -> JsonObject:
    """Return the configuration's root: its selectors, and the settings of the buffer."""
    kinds = ("input", "filter", "parser", "output")
    return manifest(
        API,
        "ClusterFluentBitConfig",
        _CONFIG,
        labels={"app.kubernetes.io/name": NAME},
        spec={
            **{f"{kind}Selector": selector(SELECTED) for kind in kinds},
            "service": {
                "daemon": False,
                "flushSeconds": 30,
                "logLevel": "error",
                "parsersFile": "parsers.conf",
                "httpServer": True,
                "httpListen": "::",
                "httpPort": _HTTP_PORT,
                "storage": {
                    "path": f"{STATE}/chunks",
                    "sync": "normal",
                    "checksum": "off",
                    "metrics": "on",
                    "maxChunksUp": 200,
                    "backlogMemLimit": "50M",
                    "deleteIrrecoverableChunks": "on",
                },
            },
        },
    )


def _monitoring() -> list[JsonObject]:
    path = {"targetLabel": "__metrics_path__", "replacement": "/api/v2/metrics/prometheus"}
    own = endpoint("metrics", targets=[path, POD_LABELS], metrics=kept_metrics(*_METRICS))
    plugin = f"{NAME}-output-plugin"
    targets = [job(plugin), POD_LABELS]
    of_plugin = endpoint("metrics-plugin", targets=targets, metrics=kept_metrics(*_PLUGIN_METRICS))
    return [
        service_monitor(AGGREGATE, NAME, _LABELS, own),
        service_monitor(AGGREGATE, plugin, _LABELS, of_plugin),
        rule_file(AGGREGATE, NAME),
    ]


FLUENT_BIT: Final = Component(name=NAME, deploy="Deploying fluent-bit", render=render, limit=120.0)
