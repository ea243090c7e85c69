"""Monitoring of cilium by the Shoot's Prometheus on the seed (spec 40 §6.3 step 10).

The alerts are `prometheus_rules.yaml`, in Prometheus' own format.
"""

from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from pergola.api.objects import JsonObject
from pergola.kube.yaml import parse
from pergola.manifests import manifest
from pergola.manifests.dashboards import Panel
from pergola.providers.networking.monitoring import PROMETHEUS, dashboards, scrape_config

_HUBBLE_ANNOTATION: Final = (
    "__meta_kubernetes_pod_annotation_networking_extensions_gardener_cloud_hubble_metrics"
)
_PORT_NAME: Final = "__meta_kubernetes_pod_container_port_name"
_APP: Final = "__meta_kubernetes_pod_label_k8s_app"


class _Target(NamedTuple):
    name: str
    app: str
    port: str
    keep: str


_TARGETS: Final = (
    _Target("cilium-agent", "cilium", "prometheus", "cilium_.+|process_.+"),
    _Target("cilium-hubble", "cilium", "hubble-metrics", "hubble_.+"),
    _Target("cilium-operator", "cilium-operator", "metrics", "cilium_operator_.+|process_.+"),
)
_AGENT_PANELS: Final = (
    Panel("Agents that are up", 'sum(up{job="cilium-agent"})', "agents"),
    Panel("Endpoints", "sum(cilium_endpoint_state) by (endpoint_state)", "{{endpoint_state}}"),
    Panel("Nodes out of reach", "max(cilium_unreachable_nodes)", "nodes"),
    Panel("Failing controllers", "sum(cilium_controllers_failing) by (pod)", "{{pod}}"),
    Panel("Dropped packets", "sum(rate(cilium_drop_count_total[5m])) by (reason)", "{{reason}}"),
    Panel("Policies in use", "max(cilium_policy)", "policies"),
    Panel(
        "Memory of agents",
        'process_resident_memory_bytes{job="cilium-agent"}',
        "{{pod}}",
        "bytes",
    ),
)
_OPERATOR_PANELS: Final = (
    Panel("Operators that are up", 'sum(up{job="cilium-operator"})', "operators"),
    Panel(
        "Identities removed",
        "sum(rate(cilium_operator_identity_gc_entries[30m])) by (status)",
        "{{status}}",
    ),
)
_HUBBLE_PANELS: Final = (
    Panel("Flows", "sum(rate(hubble_flows_processed_total[5m])) by (verdict)", "{{verdict}}"),
    Panel("Names asked for", "sum(rate(hubble_dns_queries_total[5m]))", "queries"),
    Panel("Drops", "sum(rate(hubble_drop_total[5m])) by (reason)", "{{reason}}"),
)


def monitoring(namespace: str) -> list[JsonObject]:
    """Return dashboards, scrape configurations and alerts for a Shoot's namespace on the seed."""
    boards = [
        ("cilium-agent", "Cilium agents", _AGENT_PANELS),
        ("cilium-operator", "Cilium operator", _OPERATOR_PANELS),
        ("cilium-hubble", "Hubble", _HUBBLE_PANELS),
    ]
    return [
        dashboards("cilium", namespace, boards),
        *(_scrape_config(target, namespace) for target in _TARGETS),
        _alerts(namespace),
    ]


def _scrape_config(target: _Target, namespace: str) -> JsonObject:
    keep: list[JsonObject] = [
        {
            "action": "keep",
            "sourceLabels": [_APP, _PORT_NAME],
            "regex": f"{target.app};{target.port}",
        }
    ]
    if target.port == "hubble-metrics":
        # Agents open the port only if Hubble is on.
        keep.insert(0, {"action": "keep", "sourceLabels": [_HUBBLE_ANNOTATION], "regex": "true"})
    return scrape_config(target.name, namespace, role="Pod", keep=keep, metrics=target.keep)


def _alerts(namespace: str) -> JsonObject:
    return manifest(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        "shoot-cilium-agent",
        namespace=namespace,
        labels=PROMETHEUS,
        spec=_rules(),
    )


@cache
def _rules() -> JsonObject:
    text = (files(__package__) / "prometheus_rules.yaml").read_text()
    return msgspec.convert(parse(text), JsonObject)
