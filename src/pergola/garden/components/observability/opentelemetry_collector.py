"""OpenTelemetry Collector: receives logs from fluent-bit and stores them (spec 20 §16.8)."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    TO_DNS,
    open_ports,
    to_service,
)
from pergola.garden.components.monitoring import (
    GARDEN,
    SERVICE_LABELS,
    endpoint,
    job,
    kept_metrics,
    service_monitor,
)
from pergola.garden.components.observability.conventions import application, managed
from pergola.garden.components.observability.vali import PORT as VALI_PORT
from pergola.garden.components.observability.vali import SERVICE as VALI_SERVICE
from pergola.garden.components.observability.vali import absent as absent_vali
from pergola.garden.components.observability.victoria_logs import PORT as VICTORIA_PORT
from pergola.garden.components.observability.victoria_logs import SERVICE as VICTORIA_SERVICE
from pergola.garden.components.observability.victoria_logs import absent as absent_victoria_logs
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    manifest,
    requests,
    service_account,
    vertical_pod_autoscaler,
)

NAME: Final = "opentelemetry-collector"
SERVICE: Final = "opentelemetry-collector-collector"
"""The Service that opentelemetry-operator creates for the collector."""
PORT: Final = 4317

_API: Final = "opentelemetry.io/v1beta1"
_METRICS_PORT: Final = 8888
_LABELS: Final = {
    "app": NAME,
    "role": "observability",
    "gardener.cloud/role": "observability",
    **application(NAME),
    **TO_DNS,
    **to_service(VALI_SERVICE, VALI_PORT),
    **to_service(VICTORIA_SERVICE, VICTORIA_PORT),
}
_NAMES: Final = {
    "nodename": "k8s.node.name",
    "pod_name": "k8s.pod.name",
    "container_name": "k8s.container.name",
    "namespace_name": "k8s.namespace.name",
}
"""The attributes that become labels in Vali, by label."""
_INDEXED: Final = (
    "job",
    "unit",
    "nodename",
    "origin",
    "pod_name",
    "container_name",
    "namespace_name",
    "gardener_cloud_role",
)
"""The indexed labels in Vali."""
_OF_RECORDS: Final = (
    "priority",
    "level",
    "process.command",
    "process.pid",
    "host.id",
    "service.name",
    "service.namespace",
)
"""The indexed attributes of single records in Vali."""
_STREAMS: Final = (
    "host.name",
    "k8s.node.name",
    "k8s.namespace.name",
    "k8s.pod.name",
    "k8s.container.name",
    "k8s.deployment.name",
    "k8s.daemonset.name",
    "k8s.statefulset.name",
    "severity",
    "unit",
    "origin",
    "service.name",
    "job",
)
"""The indexed attributes in VictoriaLogs."""
_SIGNALS: Final = ("log_records", "metric_points", "spans")
_PROCESS: Final = (
    "cpu_seconds(_total)?",
    "memory_rss(_bytes)?",
    "runtime_heap_alloc_bytes",
    "runtime_total_alloc_bytes_total",
    "runtime_total_sys_memory_bytes",
    "uptime(_seconds_total)?",
)
_METRICS: Final = (
    *(
        f"otelcol_exporter_{what}_{each}(_total)?"
        for what in ("enqueue_failed", "send_failed", "sent")
        for each in _SIGNALS
    ),
    "otelcol_exporter_queue_capacity",
    "otelcol_exporter_queue_size",
    *(f"otelcol_process_{each}" for each in _PROCESS),
    "otelcol_processor_(incoming|outgoing)_items(_total)?",
    *(f"otelcol_receiver_(accepted|refused)_{each}(_total)?" for each in _SIGNALS),
    "otelcol_scraper_(errored|scraped)_metric_points",
)


def render(landscape: Landscape) -> Rendered:
    """Return the collector, its ServiceMonitor and its autoscaler."""
    targets = [job(NAME), SERVICE_LABELS]
    scraped = endpoint("monitoring", targets=targets, metrics=kept_metrics(*_METRICS))
    objects = (
        service_account(NAME, NAMESPACE, _LABELS),
        _collector(landscape),
        service_monitor(GARDEN, NAME, _LABELS, scraped),
        _autoscaler(),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _collector(landscape: Landscape) -> JsonObject:
    return manifest(
        _API,
        "OpenTelemetryCollector",
        NAME,
        namespace=NAMESPACE,
        labels=_LABELS,
        annotations=open_ports(GARDEN_SCRAPES, _METRICS_PORT),
        spec={
            "mode": "deployment",
            "upgradeStrategy": "none",
            "replicas": 1,
            "image": landscape.image(NAME),
            "priorityClassName": P100,
            "resources": requests(cpu="10m", memory="64Mi"),
            "securityContext": {"allowPrivilegeEscalation": False},
            "serviceAccount": NAME,
            "observability": {"metrics": {"disablePrometheusAnnotations": True}},
            "config": configuration(landscape),
        },
    )


def configuration(landscape: Landscape) -> JsonObject:
    """Return the configuration of the collector, with one pipeline per log store."""
    return {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"[::]:{PORT}"}}}},
        "processors": _processors(),
        "exporters": _exporters(),
        "service": {"pipelines": _pipelines(landscape), "telemetry": _telemetry()},
    }


def _pipelines(landscape: Landscape) -> JsonObject:
    """Return the pipelines; without a log store, logs are only counted."""
    found: JsonObject = {}
    if absent_vali(landscape) is None:
        steps = ("resource/vali", "attributes/vali")
        found["logs/vali"] = _pipeline(("loki", "debug/logs"), steps)
    if absent_victoria_logs(landscape) is None:
        found["logs/victorialogs"] = _pipeline(("otlphttp/victorialogs",))
    return found or {"logs/none": _pipeline(("debug/logs",))}


def _pipeline(exporters: Sequence[str], steps: Sequence[str] = ()) -> JsonObject:
    return {
        "receivers": ["otlp"],
        "processors": ["memory_limiter", *steps, "batch"],
        "exporters": list(exporters),
    }


def _processors() -> JsonObject:
    copied = [
        {"action": "insert", "key": label, "from_attribute": attribute}
        for label, attribute in _NAMES.items()
    ]
    raw = {"action": "insert", "key": "loki.format", "value": "raw"}
    return {
        "memory_limiter": {"check_interval": "1s", "limit_mib": 3000, "spike_limit_mib": 600},
        "resource/vali": {"attributes": [*copied, _indexed("resource", "insert"), raw]},
        "attributes/vali": {"actions": [*copied, _indexed("attribute", "upsert"), raw]},
        "batch": {"timeout": "10s", "send_batch_size": 2000, "send_batch_max_size": 4000},
    }


def _indexed(kind: str, action: str) -> JsonObject:
    names = {"resource": (*_INDEXED, "host.name"), "attribute": (*_OF_RECORDS, *_INDEXED)}
    return {"action": action, "key": f"loki.{kind}.labels", "value": ", ".join(names[kind])}


def _exporters() -> JsonObject:
    batch = {"flush_timeout": "1s", "sizer": "bytes", "max_size": 4194304}
    return {
        "debug/logs": {"verbosity": "basic"},
        "loki": {
            "endpoint": f"http://{VALI_SERVICE}:{VALI_PORT}/vali/api/v1/push",
            "default_labels_enabled": {"exporter": False, "job": False},
            "sending_queue": {"sizer": "bytes", "queue_size": 16777216, "batch": batch},
        },
        "otlphttp/victorialogs": {
            "logs_endpoint": f"http://{VICTORIA_SERVICE}:{VICTORIA_PORT}"
            "/insert/opentelemetry/v1/logs",
            "headers": {"VL-Stream-Fields": ",".join(_STREAMS)},
        },
    }


def _telemetry() -> JsonObject:
    exporter = {"prometheus": {"host": "[::]", "port": _METRICS_PORT}}
    return {
        "logs": {"level": "info", "encoding": "json"},
        "metrics": {"level": "basic", "readers": [{"pull": {"exporter": exporter}}]},
    }


def _autoscaler() -> JsonObject:
    return vertical_pod_autoscaler(
        NAME,
        NAMESPACE,
        {"apiVersion": _API, "kind": "OpenTelemetryCollector", "name": NAME},
        "otc-container",
        {"memory": "64Mi"},
        labels=_LABELS,
    )


OPENTELEMETRY_COLLECTOR: Final = Component(
    name=NAME,
    deploy="Deploying OpenTelemetry Collector",
    after=(task_names.OPENTELEMETRY_OPERATOR,),
    render=render,
)
