"""The autoscaling, disruption budget and metrics of the ingress gateway."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import monitoring
from pergola.garden.components.conventions import terminates_tls
from pergola.garden.components.istio import INGRESS_NAMESPACE
from pergola.garden.components.service_mesh.gateway import (
    CONTAINER,
    LEAST_PER_ZONE,
    METRICS_PORT,
    NAME,
    PODS,
    SCRAPED,
    per_zone,
    versioned,
)
from pergola.garden.landscape import Landscape
from pergola.manifests import (
    disruption_budget,
    manifest,
    target_reference,
    vertical_pod_autoscaler,
)

_MOST_PER_ZONE: Final = 16
_METRICS: Final = (
    "envoy_cluster_upstream_cx_(active|connect_fail|total|[rt]x_bytes_total)",
    "envoy_server_hot_restart_epoch",
    "istio_build",
    "istio_(request|response)_bytes_(count|sum)",
    "istio_request_duration_milliseconds_(count|sum)",
    "istio_requests_total",
    "istio_tcp_(connections_(closed|opened)|(received|sent)_bytes)_total",
    "go_goroutines",
    "go_memstats_(alloc_bytes|heap_(alloc|inuse|sys)_bytes|stack_inuse_bytes)",
    "process_(cpu_seconds_total|open_fds|resident_memory_bytes|virtual_memory_bytes)",
)


def scaling(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the horizontal and vertical autoscalers and the disruption budget."""
    target = target_reference("Deployment", NAME)
    cores = "4" if terminates_tls(landscape) else "2"
    average = {"type": "AverageValue", "averageValue": cores}
    yield manifest(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        NAME,
        namespace=INGRESS_NAMESPACE,
        labels=versioned(landscape),
        spec={
            "scaleTargetRef": target,
            "minReplicas": per_zone(landscape, LEAST_PER_ZONE),
            "maxReplicas": per_zone(landscape, _MOST_PER_ZONE),
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": average}}],
            "behavior": {"scaleUp": _one_pod_in(60), "scaleDown": _one_pod_in(1800)},
        },
    )
    yield vertical_pod_autoscaler(
        NAME,
        INGRESS_NAMESPACE,
        target,
        CONTAINER,
        resources=["cpu", "memory"],
        labels=versioned(landscape),
    )
    yield disruption_budget(NAME, INGRESS_NAMESPACE, PODS, available=1)


def _one_pod_in(seconds: int) -> JsonObject:
    policy = {"type": "Pods", "value": 1, "periodSeconds": seconds}
    return {"stabilizationWindowSeconds": seconds, "policies": [policy]}


def metrics() -> Iterator[JsonObject]:
    """Yield the ServiceMonitor for the garden Prometheus, and Istio's settings for metrics."""
    address = monitoring.replace(
        "__address__",
        f"${{1}}:{METRICS_PORT}",
        "__meta_kubernetes_pod_ip",
        regex="(.+)",
    )
    yield monitoring.service_monitor(
        monitoring.GARDEN,
        NAME,
        {"app": NAME, **SCRAPED},
        monitoring.endpoint(
            "tcp",
            metrics=monitoring.kept_metrics(*_METRICS),
            targets=[address],
            path="/stats/prometheus",
        ),
        namespace=INGRESS_NAMESPACE,
    )
    tag = {"upstream_address": {"value": "upstream.address"}}
    override = {"match": {"metric": "ALL_METRICS"}, "tagOverrides": tag}
    yield manifest(
        "telemetry.istio.io/v1",
        "Telemetry",
        f"{monitoring.GARDEN}-enable-upstream-address",
        namespace=INGRESS_NAMESPACE,
        labels={"prometheus": monitoring.GARDEN},
        spec={"metrics": [{"providers": [{"name": "prometheus"}], "overrides": [override]}]},
    )
