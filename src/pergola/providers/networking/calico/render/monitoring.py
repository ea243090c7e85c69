"""ScrapeConfigs for the seed's Prometheus, and dashboards (spec 40 §5.3 step 9)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests.dashboards import Panel
from pergola.providers.networking.calico.render.node_helpers import exports_bird
from pergola.providers.networking.calico.values import Values
from pergola.providers.networking.monitoring import dashboards, scrape_config

_SERVICE: Final = "__meta_kubernetes_service_name"
_PORT_NAME: Final = "__meta_kubernetes_endpoint_port_name"
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
    "felix": "felix_.+|process_.+|go_.+",
    "typha": "typha_.+|process_.+|go_.+",
    "bird": "bird_.+",
}


def monitoring_objects(values: Values, namespace: str) -> list[JsonObject]:
    """Return the objects next to the Network; Prometheus and Plutono select them by label."""
    boards = [
        ("calico-felix", "Calico Felix", _FELIX),
        ("calico-typha", "Calico Typha", _TYPHA),
    ]
    return [
        dashboards("calico", namespace, boards),
        _scrape_config("felix", namespace),
        *([_scrape_config("typha", namespace)] if values.typha else []),
        *([_scrape_config("bird", namespace)] if exports_bird(values) else []),
    ]


def _scrape_config(component: str, namespace: str) -> JsonObject:
    chosen: JsonObject = {
        "action": "keep",
        "sourceLabels": [_SERVICE, _PORT_NAME],
        "regex": f"calico-{component}-monitoring;metrics",
    }
    return scrape_config(
        f"calico-{component}",
        namespace,
        role="Endpoints",
        keep=[chosen],
        metrics=_METRICS[component],
    )
