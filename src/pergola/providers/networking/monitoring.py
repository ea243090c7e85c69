"""Scraping of a network plugin's pods by the Shoot's Prometheus, which runs on the seed."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import KUBE_SYSTEM, manifest
from pergola.manifests.dashboards import Panel, dashboard

PROMETHEUS: Final = {"prometheus": "shoot"}
"""The label that selects the configuration of a Shoot's Prometheus."""
DASHBOARDS: Final = {"dashboard.monitoring.gardener.cloud/shoot": "true"}
"""The label that selects the dashboards of a Shoot's Plutono."""

_API_SERVER: Final = "kube-apiserver:443"
_TOKEN: Final = "shoot-access-prometheus-shoot"  # noqa: S105 - the name of a Secret
_POD: Final = "__meta_kubernetes_pod_name"
_PORT: Final = "__meta_kubernetes_pod_container_port_number"
_PROXY: Final = f"/api/v1/namespaces/{KUBE_SYSTEM}/pods/${{1}}:${{2}}/proxy/metrics"


def scrape_config(
    job: str, namespace: str, *, role: str, keep: Sequence[JsonObject], metrics: str
) -> JsonObject:
    """Return the configuration that scrapes pods of the Shoot through its API server.

    Args:
        namespace: Of the Shoot, on the seed.
        role: What is discovered: `Pod` or `Endpoints`.
        keep: Relabelings that choose the targets.
        metrics: A regular expression for the names of the metrics to keep.
    """
    return manifest(
        "monitoring.coreos.com/v1alpha1",
        "ScrapeConfig",
        f"shoot-{job}",
        namespace=namespace,
        labels=PROMETHEUS,
        spec={
            "honorLabels": False,
            "scheme": "HTTPS",
            "scrapeTimeout": "30s",
            **_access(),
            "kubernetesSDConfigs": [
                {
                    "role": role,
                    "apiServer": f"https://{_API_SERVER}",
                    "namespaces": {"names": [KUBE_SYSTEM]},
                    **_access(),
                }
            ],
            "relabelings": [*keep, *_relabelings(job)],
            "metricRelabelings": [
                {"action": "keep", "sourceLabels": ["__name__"], "regex": f"^({metrics})$"}
            ],
        },
    )


def dashboards(
    plugin: str, namespace: str, boards: Sequence[tuple[str, str, Sequence[Panel]]]
) -> JsonObject:
    """Return the ConfigMap with the dashboards of a plugin.

    Args:
        boards: The uid, title and panels of each.
    """
    return manifest(
        "v1",
        "ConfigMap",
        f"{plugin}-dashboards",
        namespace=namespace,
        labels=DASHBOARDS,
        data={
            f"{uid}-dashboard.json": dashboard(uid, title, ["network", plugin], panels)
            for uid, title, panels in boards
        },
    )


def _access() -> JsonObject:
    """Return the authentication for the Shoot's API server, the only way to its pods."""
    return {
        "authorization": {"credentials": {"name": _TOKEN, "key": "token"}},
        "tlsConfig": {"ca": {"secret": {"name": "ca", "key": "bundle.crt"}}},
    }


def _relabelings(job: str) -> list[JsonObject]:
    return [
        {"targetLabel": "job", "replacement": job},
        {"sourceLabels": [_POD], "targetLabel": "pod"},
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"},
        {
            "sourceLabels": [_POD, _PORT],
            "regex": "(.+);(.+)",
            "targetLabel": "__metrics_path__",
            "replacement": _PROXY,
        },
        {"targetLabel": "__address__", "replacement": _API_SERVER},
    ]
