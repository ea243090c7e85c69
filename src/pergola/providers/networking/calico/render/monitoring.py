"""ScrapeConfigs for the seed's Prometheus, and dashboards (spec 40 §5.3 step 9)."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.manifests import KUBE_SYSTEM, manifest
from pergola.providers.networking.calico.render.node_helpers import exports_bird
from pergola.providers.networking.calico.values import Values

_PROMETHEUS: Final = {"prometheus": "shoot"}
_DASHBOARDS: Final = {"dashboard.monitoring.gardener.cloud/shoot": "true"}


class Panel(NamedTuple):
    """A graph of a dashboard."""

    title: str
    expression: str
    legend: str
    unit: str = "short"


_FELIX: Final = (
    Panel("Endpoints by node", "felix_cluster_num_workload_endpoints", "{{node}}"),
    Panel("Active policies", "felix_cluster_num_policies", "{{node}}"),
    Panel(
        "Time to apply a change (p99)",
        'felix_int_dataplane_apply_time_seconds{quantile="0.99"}',
        "{{node}}",
        "s",
    ),
    Panel("Failures of iptables", "rate(felix_iptables_save_errors[5m])", "{{node}}"),
    Panel("Errors that were logged", "rate(felix_log_errors[5m])", "{{node}}"),
    Panel("Memory", 'process_resident_memory_bytes{job="calico-felix"}', "{{node}}", "bytes"),
)
_TYPHA: Final = (
    Panel("Connections", "typha_connections_active", "{{pod}}"),
    Panel("Connections dropped", "rate(typha_connections_dropped[5m])", "{{pod}}"),
    Panel("Latency of clients (p99)", 'typha_client_latency_secs{quantile="0.99"}', "{{pod}}", "s"),
    Panel("Memory", 'process_resident_memory_bytes{job="calico-typha"}', "{{pod}}", "bytes"),
)
_METRICS: Final = {
    "felix": "^(felix_.+|process_.+|go_.+)$",
    "typha": "^(typha_.+|process_.+|go_.+)$",
    "bird": "^bird_.+$",
}


def monitoring_objects(values: Values, namespace: str) -> list[JsonObject]:
    """Return the objects beside the Network; Prometheus and Plutono find them by their labels."""
    return [
        _dashboards(namespace),
        _scrape_config("felix", namespace),
        *([_scrape_config("typha", namespace)] if values.typha else []),
        *([_scrape_config("bird", namespace)] if exports_bird(values) else []),
    ]


def _scrape_config(component: str, namespace: str) -> JsonObject:
    service = f"calico-{component}-monitoring"
    spec: JsonObject = {
        "honorLabels": False,
        "scrapeTimeout": "30s",
        "scheme": "HTTPS",
        **_through_api_server(),
        "kubernetesSDConfigs": [_discovery()],
        "relabelings": _relabelings(component, service),
        "metricRelabelings": [
            {"sourceLabels": ["__name__"], "action": "keep", "regex": _METRICS[component]}
        ],
    }
    return manifest(
        "monitoring.coreos.com/v1alpha1",
        "ScrapeConfig",
        f"shoot-calico-{component}",
        namespace=namespace,
        labels=_PROMETHEUS,
        spec=spec,
    )


def _through_api_server() -> JsonObject:
    """Return the authentication for a Shoot's API server, through which pods are scraped."""
    token = {"name": "shoot-access-prometheus-shoot", "key": "token"}
    return {
        "authorization": {"credentials": token},
        "tlsConfig": {"ca": {"secret": {"name": "ca", "key": "bundle.crt"}}},
    }


def _discovery() -> JsonObject:
    return {
        "apiServer": "https://kube-apiserver",
        "role": "Endpoints",
        "namespaces": {"names": [KUBE_SYSTEM]},
        "followRedirects": True,
        **_through_api_server(),
    }


def _relabelings(component: str, service: str) -> list[JsonObject]:
    port = "__meta_kubernetes_endpoint_port_name"
    path = f"/api/v1/namespaces/{KUBE_SYSTEM}/pods/${{1}}:${{2}}/proxy/metrics"
    pod, number = "__meta_kubernetes_pod_name", "__meta_kubernetes_pod_container_port_number"
    return [
        {"action": "replace", "targetLabel": "job", "replacement": f"calico-{component}"},
        {
            "sourceLabels": ["__meta_kubernetes_service_name", port],
            "action": "keep",
            "regex": f"{service};metrics",
        },
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"},
        {"sourceLabels": [pod], "targetLabel": "pod"},
        {"targetLabel": "__address__", "replacement": "kube-apiserver:443"},
        {
            "sourceLabels": [pod, number],
            "regex": "(.+);(.+)",
            "targetLabel": "__metrics_path__",
            "replacement": path,
        },
    ]


def _dashboards(namespace: str) -> JsonObject:
    data = {
        "calico-felix-dashboard.json": _dashboard("calico-felix", "Calico Felix", _FELIX),
        "calico-typha-dashboard.json": _dashboard("calico-typha", "Calico Typha", _TYPHA),
    }
    return manifest(
        "v1",
        "ConfigMap",
        "calico-dashboards",
        namespace=namespace,
        labels=_DASHBOARDS,
        data=data,
    )


def _dashboard(uid: str, title: str, panels: Sequence[Panel]) -> str:
    dashboard: JsonObject = {
        "uid": uid,
        "title": title,
        "tags": ["network", "calico"],
        "schemaVersion": 27,
        "refresh": "1m",
        "time": {"from": "now-1h", "to": "now"},
        "panels": [_panel(index, panel) for index, panel in enumerate(panels)],
    }
    return json.dumps(dashboard, indent=1)


def _panel(index: int, panel: Panel) -> JsonObject:
    return {
        "id": index + 1,
        "type": "graph",
        "title": panel.title,
        "datasource": "prometheus",
        "gridPos": {"x": 12 * (index % 2), "y": 8 * (index // 2), "w": 12, "h": 8},
        "targets": [{"expr": panel.expression, "legendFormat": panel.legend, "refId": "A"}],
        "yaxes": [{"format": panel.unit, "min": 0}, {"format": "short"}],
    }
