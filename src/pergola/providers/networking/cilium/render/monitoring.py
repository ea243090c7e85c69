"""Monitoring of cilium by the Shoot's Prometheus on the seed (spec 40 §6.3 step 10)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from pergola.api.objects import JsonObject
from pergola.manifests import KUBE_SYSTEM, manifest

_PROMETHEUS: Final = {"prometheus": "shoot"}
_DASHBOARDS: Final = {"dashboard.monitoring.gardener.cloud/shoot": "true"}
_TOKEN: Final = "shoot-access-prometheus-shoot"  # noqa: S105 - the name of a Secret
_HUBBLE_ANNOTATION: Final = (
    "__meta_kubernetes_pod_annotation_networking_extensions_gardener_cloud_hubble_metrics"
)
_POD_NAME: Final = "__meta_kubernetes_pod_name"
_PORT_NAME: Final = "__meta_kubernetes_pod_container_port_name"
_PORT_NUMBER: Final = "__meta_kubernetes_pod_container_port_number"
_APP: Final = "__meta_kubernetes_pod_label_k8s_app"


class _Target(NamedTuple):
    name: str
    app: str
    port: str
    keep: str


class _Panel(NamedTuple):
    title: str
    query: str
    legend: str
    unit: str = "short"


_TARGETS: Final = (
    _Target("cilium-agent", "cilium", "prometheus", "cilium_.+|process_.+"),
    _Target("cilium-hubble", "cilium", "hubble-metrics", "hubble_.+"),
    _Target("cilium-operator", "cilium-operator", "metrics", "cilium_operator_.+|process_.+"),
)
_AGENT_PANELS: Final = (
    _Panel("Agents that are up", 'sum(up{job="cilium-agent"})', "agents"),
    _Panel("Endpoints", "sum(cilium_endpoint_state) by (endpoint_state)", "{{endpoint_state}}"),
    _Panel("Nodes out of reach", "max(cilium_unreachable_nodes)", "nodes"),
    _Panel("Failing controllers", "sum(cilium_controllers_failing) by (pod)", "{{pod}}"),
    _Panel("Dropped packets", "sum(rate(cilium_drop_count_total[5m])) by (reason)", "{{reason}}"),
    _Panel("Policies in use", "max(cilium_policy)", "policies"),
    _Panel(
        "Memory of agents",
        'process_resident_memory_bytes{job="cilium-agent"}',
        "{{pod}}",
        "bytes",
    ),
)
_OPERATOR_PANELS: Final = (
    _Panel("Operators that are up", 'sum(up{job="cilium-operator"})', "operators"),
    _Panel(
        "Identities removed",
        "sum(rate(cilium_operator_identity_gc_entries[30m])) by (status)",
        "{{status}}",
    ),
)
_HUBBLE_PANELS: Final = (
    _Panel("Flows", "sum(rate(hubble_flows_processed_total[5m])) by (verdict)", "{{verdict}}"),
    _Panel("Names asked for", "sum(rate(hubble_dns_queries_total[5m]))", "queries"),
    _Panel("Drops", "sum(rate(hubble_drop_total[5m])) by (reason)", "{{reason}}"),
)


def monitoring(namespace: str) -> list[JsonObject]:
    """Return dashboards, scrape configurations and alerts for a Shoot's namespace on the seed."""
    return [
        _dashboards(namespace),
        *(_scrape_config(target, namespace) for target in _TARGETS),
        _alerts(namespace),
    ]


def _scrape_config(target: _Target, namespace: str) -> JsonObject:
    return manifest(
        "monitoring.coreos.com/v1alpha1",
        "ScrapeConfig",
        f"shoot-{target.name}",
        namespace=namespace,
        labels=_PROMETHEUS,
        spec={
            "honorLabels": False,
            "scheme": "HTTPS",
            "scrapeTimeout": "30s",
            **_as_prometheus(),
            "kubernetesSDConfigs": [
                {
                    "role": "Pod",
                    "apiServer": "https://kube-apiserver:443",
                    "namespaces": {"names": [KUBE_SYSTEM]},
                    **_as_prometheus(),
                }
            ],
            "relabelings": _relabelings(target),
            "metricRelabelings": [
                {"action": "keep", "sourceLabels": ["__name__"], "regex": f"^({target.keep})$"}
            ],
        },
    )


def _as_prometheus() -> JsonObject:
    """Reach pods of the Shoot through its API server, the only way from the seed."""
    return {
        "authorization": {"credentials": {"name": _TOKEN, "key": "token"}},
        "tlsConfig": {"ca": {"secret": {"name": "ca", "key": "bundle.crt"}}},
    }


def _relabelings(target: _Target) -> list[JsonObject]:
    found: list[JsonObject] = [
        {
            "action": "keep",
            "sourceLabels": [_APP, _PORT_NAME],
            "regex": f"{target.app};{target.port}",
        },
        {"targetLabel": "job", "replacement": target.name},
        {"sourceLabels": [_POD_NAME], "targetLabel": "pod"},
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"},
        {
            "sourceLabels": [_POD_NAME, _PORT_NUMBER],
            "regex": "(.+);(.+)",
            "targetLabel": "__metrics_path__",
            "replacement": f"/api/v1/namespaces/{KUBE_SYSTEM}/pods/${{1}}:${{2}}/proxy/metrics",
        },
        {"targetLabel": "__address__", "replacement": "kube-apiserver:443"},
    ]
    if target.port == "hubble-metrics":
        # Agents open the port only if Hubble is on.
        keep = {"action": "keep", "sourceLabels": [_HUBBLE_ANNOTATION], "regex": "true"}
        found.insert(0, keep)
    return found


def _alerts(namespace: str) -> JsonObject:
    agents = 'job="cilium-agent"'
    rules = [
        _alert(
            "CiliumAgentsDown",
            f"sum(up{{{agents}}} == bool 0) > 0",
            "15m",
            "Cilium agents do not answer",
            "{{ $value }} nodes have no working agent: pods there cannot start or be reached.",
        ),
        _alert(
            "CiliumNodesUnreachable",
            "max(cilium_unreachable_nodes) > 0",
            "15m",
            "Cilium agents do not reach all nodes",
            "Up to {{ $value }} nodes cannot be reached from others.",
        ),
        _alert(
            "CiliumEndpointsNotReady",
            'sum(cilium_endpoint_state{endpoint_state!="ready"}) > 10',
            "30m",
            "Many pods wait for their network",
            "{{ $value }} endpoints are not ready.",
        ),
    ]
    return manifest(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        "shoot-cilium-agent",
        namespace=namespace,
        labels=_PROMETHEUS,
        spec={"groups": [{"name": "cilium-agent.rules", "rules": rules}]},
    )


def _alert(name: str, expression: str, lasting: str, summary: str, text: str) -> JsonObject:
    return {
        "alert": name,
        "expr": expression,
        "for": lasting,
        "labels": {
            "service": "network",
            "severity": "warning",
            "type": "shoot",
            "visibility": "all",
        },
        "annotations": {"summary": summary, "description": text},
    }


def _dashboards(namespace: str) -> JsonObject:
    boards = {
        "cilium-agent": ("Cilium agents", _AGENT_PANELS),
        "cilium-operator": ("Cilium operator", _OPERATOR_PANELS),
        "cilium-hubble": ("Hubble", _HUBBLE_PANELS),
    }
    data = {
        f"{uid}-dashboard.json": _dashboard(uid, title, panels)
        for uid, (title, panels) in boards.items()
    }
    return manifest(
        "v1",
        "ConfigMap",
        "cilium-dashboards",
        namespace=namespace,
        labels=_DASHBOARDS,
        data=data,
    )


def _dashboard(uid: str, title: str, panels: Sequence[_Panel]) -> str:
    board = {
        "uid": uid,
        "title": title,
        "tags": ["network", "cilium"],
        "schemaVersion": 36,
        "refresh": "1m",
        "time": {"from": "now-1h", "to": "now"},
        "panels": [_panel(index, panel) for index, panel in enumerate(panels)],
    }
    return orjson.dumps(board).decode()


def _panel(index: int, panel: _Panel) -> JsonObject:
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "gridPos": {"x": 12 * (index % 2), "y": 8 * (index // 2), "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [{"refId": "A", "expr": panel.query, "legendFormat": panel.legend}],
    }
