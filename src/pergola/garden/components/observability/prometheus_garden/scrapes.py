"""The scrapes of the garden Prometheus that do not belong to a component."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.monitoring import (
    GARDEN,
    endpoint,
    job,
    kept_metrics,
    replace,
    scrape_config,
    service_monitor,
    static,
)
from pergola.garden.components.observability.alertmanager import LABELS as ALERTMANAGER_LABELS
from pergola.garden.components.observability.alertmanager import NAME as ALERTMANAGER
from pergola.garden.landscape import Landscape

_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_AGGREGATE: Final = "prometheus-aggregate"
_RESTARTS: Final = "seed:kube_pod_container_status_restarts_total"
_LARGE: Final = (
    "shoot:apiserver_storage_objects:sum_by_resource",
    "shoot:apiserver_watch_duration:quantile",
)
_BY_CONTAINER: Final = '__name__=~"seed:(.+):sum_by_container",container="kube-apiserver"'
_FEDERATED: Final = (
    '{__name__=~"seed:(.+):count"}',
    '{__name__=~"seed:(.+):sum"}',
    '{__name__=~"seed:(.+):sum_cp"}',
    '{__name__=~"seed:(.+):sum_by_pod",namespace=~"extension-(.+)"}',
    f'{{{_BY_CONTAINER},__name__!="{_RESTARTS}:sum_by_container"}}',
    f'{{__name__=~"shoot:(.+):(.+)",__name__!="{_LARGE[0]}",__name__!="{_LARGE[1]}"}}',
    '{__name__="ALERTS"}',
    '{__name__="shoot:availability"}',
    '{__name__="prometheus_tsdb_lowest_timestamp"}',
    '{__name__="prometheus_tsdb_storage_blocks_bytes"}',
    '{__name__="seed:persistentvolume:inconsistent_size"}',
    f'{{__name__="{_RESTARTS}:max_by_namespace"}}',
    '{__name__=~"metering:.+:(sum_by_namespace|sum_by_instance_type)"}',
)
"""The series to federate from the aggregate Prometheus of each Seed."""
_CONTAINER_METRICS: Final = (
    "container_cpu_usage_seconds_total",
    "container_fs_reads_bytes_total",
    "container_fs_writes_bytes_total",
    "container_fs_inodes_total",
    "container_fs_limit_bytes",
    "container_fs_usage_bytes",
    "container_last_seen",
    "container_memory_working_set_bytes",
    "container_network_receive_bytes_total",
    "container_network_transmit_bytes_total",
)
_ALERTMANAGER_METRICS: Final = (
    "alertmanager_alerts",
    "alertmanager_alerts_received_total",
    "alertmanager_build_info",
    "alertmanager_cluster_health_score",
    "alertmanager_cluster_members",
    "alertmanager_cluster_peers_joined_total",
    "alertmanager_config_hash",
    "alertmanager_config_last_reload_success_timestamp_seconds",
    "alertmanager_notifications_failed_total",
    "alertmanager_notifications_total",
    "alertmanager_peer_position",
    "alertmanager_silences",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
)


def scrapes(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the scrapes of Prometheus itself, of Alertmanager, and of Seeds."""
    return (
        scrape_config(
            GARDEN,
            "prometheus-garden",
            {
                "staticConfigs": static("localhost:9090"),
                "relabelings": [job("prometheus-garden")],
                "metricRelabelings": kept_metrics("prometheus_(.+)"),
            },
        ),
        service_monitor(
            GARDEN,
            ALERTMANAGER,
            ALERTMANAGER_LABELS,
            endpoint("metrics", metrics=kept_metrics(*_ALERTMANAGER_METRICS)),
        ),
        *_seeds(landscape),
    )


def _seeds(landscape: Landscape) -> list[JsonObject]:
    """Return the federation of Seeds: by Service for the runtime cluster, by ingress for others."""
    own = landscape.own_seed_domain
    hosts = [f"p-seed.{domain}" for domain in landscape.seed_domains if domain != own]
    found = []
    if own and own in landscape.seed_domains:
        found.append(scrape_config(GARDEN, _AGGREGATE, _federation(_AGGREGATE)))
    if hosts and landscape.seed_password:
        spec = _federation(*hosts) | _authentication(landscape.seed_password)
        found.append(scrape_config(GARDEN, f"{_AGGREGATE}-ingress", spec))
    return found


def _federation(*targets: str) -> JsonObject:
    return {
        "honorLabels": True,
        "honorTimestamps": False,
        "metricsPath": "/federate",
        "params": {"match[]": list(_FEDERATED)},
        "staticConfigs": static(*targets),
        "relabelings": [job(_AGGREGATE)],
        "metricRelabelings": [replace("shoot_alertname", "", "alertname")],
    }


def _authentication(secret: str) -> JsonObject:
    return {
        "scheme": "HTTPS",
        "tlsConfig": {"insecureSkipVerify": True},
        "basicAuth": {
            "username": {"name": secret, "key": "username"},
            "password": {"name": secret, "key": "password"},
        },
    }


def cadvisor() -> JsonObject:
    """Return the scrape configuration for containers in the garden's namespaces.

    It reaches kubelets through the API server and uses the format of Prometheus' configuration
    file, because a ScrapeConfig cannot refer to the files of the ServiceAccount.
    """
    kept = "^(garden|virtual-garden-istio-ingress)$"
    return {
        "job_name": "cadvisor",
        "honor_labels": False,
        "scheme": "https",
        "tls_config": {"ca_file": f"{_ACCOUNT}/ca.crt"},
        "bearer_token_file": f"{_ACCOUNT}/token",
        "kubernetes_sd_configs": [{"role": "node"}],
        "relabel_configs": _nodes_through_the_api_server(),
        "metric_relabel_configs": [
            {"source_labels": ["namespace"], "regex": kept, "action": "keep"},
            {
                "source_labels": ["__name__"],
                "regex": f"^({'|'.join(_CONTAINER_METRICS)})$",
                "action": "keep",
            },
        ],
    }


def _nodes_through_the_api_server() -> list[JsonObject]:
    return [
        {
            "source_labels": ["__meta_kubernetes_node_address_InternalIP"],
            "target_label": "instance",
        },
        {"action": "labelmap", "regex": "__meta_kubernetes_node_label_(.+)"},
        {"target_label": "__address__", "replacement": "kubernetes.default.svc"},
        {
            "source_labels": ["__meta_kubernetes_node_name"],
            "regex": "(.+)",
            "target_label": "__metrics_path__",
            "replacement": "/api/v1/nodes/${1}/proxy/metrics/cadvisor",
        },
    ]
