"""Vali: stores the logs of the garden (spec 20 §16.8).

It has one replica, and a curator drops the oldest logs before the volume is full.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.ip_ranges import is_network, parse_network
from pergola.api.objects import JsonObject, JsonValue, name_of
from pergola.bundle import make_unique
from pergola.garden.components import volume_autoscaling
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import SEED_SCRAPES, open_ports
from pergola.garden.components.istio import EXPORTED
from pergola.garden.components.monitoring import (
    AGGREGATE,
    SERVICE_LABELS,
    endpoint,
    job,
    kept_metrics,
    rule_file,
    service_monitor,
)
from pergola.garden.components.observability.conventions import (
    application,
    managed,
    volume_claim,
)
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    PRIVILEGED,
    config_map_volume,
    manifest,
    mount,
    port,
    requests,
    selector,
    service,
    service_port,
    target_reference,
    vertical_pod_autoscaler,
)

_DATA: Final = "/data"
_CHUNKS: Final = f"{_DATA}/vali/chunks"
_INDEX: Final = f"{_DATA}/vali/index"
_RETENTION: Final = "360h"
_LARGE_DIRECTORIES: Final = f"""#!/bin/bash
# A directory with many chunks needs an index of more than two levels, which ext4 has to allow.
set -o errexit
device=$(mount | awk '$3 == "{_DATA}" {{print $1}}')
tune2fs -O large_dir "$device"
"""


def files(port: int) -> dict[str, str]:
    """Return all files by name.

    Args:
        port: The port that Vali listens on.
    """
    return {
        "vali.yaml": dump(_vali_settings(port)),
        "curator.yaml": dump(_curator_settings()),
        "vali-init.sh": _LARGE_DIRECTORIES,
    }


def _vali_settings(port: int) -> JsonObject:
    """Return Vali's configuration: one replica, fifteen days of logs on the volume."""
    return {
        "auth_enabled": False,
        "server": {"http_listen_port": port},
        "ingester": _ingester(),
        "limits_config": {
            "enforce_metric_name": False,
            "reject_old_samples": False,
            "reject_old_samples_max_age": "168h",
            "ingestion_rate_mb": 12,
            "ingestion_burst_size_mb": 16,
        },
        "schema_config": {"configs": [_schema()]},
        "storage_config": {
            "boltdb": {"directory": _INDEX},
            "filesystem": {"directory": _CHUNKS},
        },
        "chunk_store_config": {"max_look_back_period": _RETENTION},
        "table_manager": {"retention_deletes_enabled": True, "retention_period": _RETENTION},
    }


def _ingester() -> JsonObject:
    ring = {"kvstore": {"store": "inmemory"}, "replication_factor": 1}
    return {
        "chunk_target_size": 1536000,
        "chunk_idle_period": "3m",
        "chunk_block_size": 262144,
        "chunk_retain_period": "3m",
        "max_transfer_retries": 3,
        "lifecycler": {"ring": ring, "final_sleep": "0s", "min_ready_duration": "1s"},
    }


def _schema() -> JsonObject:
    """Return the layout of the data; existing volumes are unreadable with any other."""
    return {
        "from": "2018-04-15",
        "store": "boltdb",
        "object_store": "filesystem",
        "schema": "v11",
        "index": {"prefix": "index_", "period": "24h"},
    }


def _curator_settings() -> JsonObject:
    """Return the curator's configuration: drop the oldest chunks if less than 10% is free."""
    limits = {
        "MinFreePercentages": 10,
        "TargetFreePercentages": 15,
        "PageSizeForDeletionPercentages": 1,
    }
    return {
        "LogLevel": "info",
        "DiskPath": _CHUNKS,
        "TriggerInterval": "1h",
        "InodeConfig": limits,
        "StorageConfig": dict(limits),
    }


NAME: Final = "vali"
SERVICE: Final = "logging"
PORT: Final = 3100

_LABELS: Final = {"app": NAME, "role": "logging", "gardener.cloud/role": "logging"}
_SIZE: Final = "30Gi"
_USER: Final = 10001
_CURATOR: Final = "vali-curator"
_CURATOR_PORT: Final = 2718
_TUNE: Final = "tune2fs"
_FILES: Final = "/etc/vali"
_CONFIG: Final = "config"
_EXECUTABLE: Final = 0o520
_IPV6: Final = 6
_INGESTER: Final = (
    "blocks_per_chunk",
    "chunk_age_seconds",
    "chunk_bounds_hours",
    "chunk_compression_ratio",
    "chunk_encode_time_seconds",
    "chunk_entries",
    "chunk_size_bytes",
    "chunk_utilization",
)
_METRICS: Final = (
    *(f"vali_ingester_{name}_{part}" for name in _INGESTER for part in ("sum", "count")),
    "vali_ingester_memory_chunks",
    "vali_ingester_received_chunks",
    "vali_ingester_samples_per_chunk_sum",
    "vali_ingester_samples_per_chunk_count",
    "vali_ingester_sent_chunks",
    "vali_panic_total",
    "vali_logql_querystats_duplicates_total",
    "vali_logql_querystats_ingester_sent_lines_total",
    "prometheus_target_scrapes_sample_out_of_order_total",
)


_REMOVED: Final = ("RemoveVali", "VictoriaLogsBackend")
"""Only together: otherwise, nothing would keep the logs."""


def absent(landscape: Landscape) -> str | None:
    """Return why the Garden does not store logs in Vali, or None if it does."""
    if all(landscape.feature_gates.get(gate, False) for gate in _REMOVED):
        return f"the feature gates {' and '.join(_REMOVED)} are on"
    for cidr in landscape.runtime.networking.pods:
        # Rules of the Garden report what is not a network.
        if is_network(cidr) and parse_network(cidr).version == _IPV6:
            return f"spec.runtimeCluster.networking.pods has {cidr}, and Vali does not support IPv6"
    return None


def render(landscape: Landscape) -> Rendered:
    """Return Vali, its autoscaler, its ServiceMonitor and its alerts."""
    config = make_unique(_config_map())
    objects = (
        config,
        _stateful_set(landscape, name_of(config)),
        _service(),
        _autoscaler(),
        _service_monitor(),
        rule_file(AGGREGATE, NAME),
        *_volume_autoscaler(landscape),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _volume_autoscaler(landscape: Landscape) -> Iterator[JsonObject]:
    if volume_autoscaling.absent(landscape) is None:
        target = target_reference("StatefulSet", NAME)
        yield volume_autoscaling.volume_autoscaler(NAME, target, _LABELS, step="1Gi")


def _config_map() -> JsonObject:
    name, data = "vali-config", files(PORT)
    return manifest("v1", "ConfigMap", name, namespace=NAMESPACE, labels=_LABELS, data=data)


def _stateful_set(landscape: Landscape, config: str) -> JsonObject:
    return manifest(
        "apps/v1",
        "StatefulSet",
        NAME,
        namespace=NAMESPACE,
        labels=_LABELS,
        spec={
            "replicas": 1,
            "serviceName": "",
            "selector": selector(_LABELS),
            "template": {
                "metadata": {"labels": {**_LABELS, **application(NAME)}},
                "spec": _pod(landscape, config),
            },
            "volumeClaimTemplates": [volume_claim(landscape, NAME, _SIZE)],
        },
    )


def _pod(landscape: Landscape, config: str) -> JsonObject:
    return {
        "priorityClassName": P100,
        "automountServiceAccountToken": False,
        "securityContext": {"fsGroup": _USER, "fsGroupChangePolicy": "OnRootMismatch"},
        "initContainers": [_large_directories(landscape)],
        "containers": [_vali(landscape), _curator(landscape)],
        "volumes": [config_map_volume(_CONFIG, config, defaultMode=_EXECUTABLE)],
    }


def _large_directories(landscape: Landscape) -> JsonObject:
    """Return the init container that tunes an ext4 file system; others work without it."""
    script = "vali-init.sh"
    return {
        "name": "init-large-dir",
        "image": landscape.image(_TUNE),
        "command": ["bash", "-c", f"/{script} || true"],
        "securityContext": {
            **PRIVILEGED,
            "runAsUser": 0,
            "runAsGroup": 0,
            "runAsNonRoot": False,
        },
        "volumeMounts": [_data(), mount(_CONFIG, f"/{script}", subPath=script)],
    }


def _vali(landscape: Landscape) -> JsonObject:
    return {
        "name": NAME,
        "image": landscape.image(NAME),
        "args": [f"-config.file={_FILES}/vali.yaml"],
        "ports": [port("metrics", PORT)],
        "livenessProbe": _probe(initialDelaySeconds=120, failureThreshold=5),
        "readinessProbe": _probe(failureThreshold=7),
        "resources": requests(cpu="10m", memory="100M"),
        "securityContext": _unprivileged(),
        "volumeMounts": [_file("vali.yaml"), _data()],
    }


def _curator(landscape: Landscape) -> JsonObject:
    return {
        "name": "curator",
        "image": landscape.image(_CURATOR),
        "args": [f"-config={_FILES}/curator.yaml"],
        "ports": [port("curatormetrics", _CURATOR_PORT)],
        "resources": requests(cpu="5m", memory="15Mi"),
        "securityContext": _unprivileged(),
        "volumeMounts": [_file("curator.yaml"), _data()],
    }


def _probe(**timing: JsonValue) -> JsonObject:
    return {"httpGet": {"path": "/ready", "port": "metrics"}, **timing}


def _unprivileged() -> JsonObject:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
    }


def _file(name: str) -> JsonObject:
    return mount(_CONFIG, f"{_FILES}/{name}", subPath=name)


def _data() -> JsonObject:
    return mount(NAME, "/data")


def _service() -> JsonObject:
    return service(
        SERVICE,
        NAMESPACE,
        _LABELS,
        service_port("metrics", PORT),
        labels=_LABELS,
        annotations={**EXPORTED, **open_ports(SEED_SCRAPES, PORT)},
    )


def _autoscaler() -> JsonObject:
    return vertical_pod_autoscaler(
        "vali-vpa",
        NAMESPACE,
        target_reference("StatefulSet", NAME),
        NAME,
        labels={**_LABELS, **application(NAME)},
    )


def _service_monitor() -> JsonObject:
    targets = [job(NAME), SERVICE_LABELS]
    scraped = endpoint("metrics", targets=targets, metrics=kept_metrics(*_METRICS))
    return service_monitor(AGGREGATE, NAME, _LABELS, scraped)


VALI: Final = Component(name=NAME, deploy="Deploying Vali", absent=absent, render=render)
