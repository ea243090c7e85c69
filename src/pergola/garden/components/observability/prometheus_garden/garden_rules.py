"""Alerts about the garden itself, and the latency of its API servers."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.monitoring import (
    GARDEN,
    alert,
    prometheus_rule,
    record,
    rules,
)
from pergola.garden.components.observability.prometheus_garden.alerting import (
    CRITICAL,
    LANDSCAPE,
    WARNING,
    value_of,
)
from pergola.garden.landscape import Landscape

_QUANTILES: Final = ("0.99", "0.9", "0.5")
_RECOMMENDED: Final = (
    "kube_customresource_verticalpodautoscaler_status_recommendation_containerrecommendations"
)


def garden_rules(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return alerts about the garden's components in the runtime cluster."""
    each = (
        *_unreachable(landscape),
        *_metrics_exporter(),
        *_garden_status(),
        *_workloads(),
    )
    return (
        prometheus_rule(GARDEN, "garden", rules("garden", *each)),
        prometheus_rule(GARDEN, "auditlog", rules("auditlog", _audit())),
        prometheus_rule(GARDEN, "recording", rules("recording.rules", *_latency())),
    )


def _unreachable(landscape: Landscape) -> Iterator[JsonObject]:
    yield _probe("DashboardDown", "Dashboard", "dashboard", "dashboard", "5m")
    yield _probe("ApiServerDown", "ApiServer", "apiserver", "apiserver", "2m")
    name = "gardener-apiserver"
    yield _probe("GardenerApiServerDown", "Gardener ApiServer", name, name, "2m")
    if landscape.virtual.gardener.discovery_server is not None:
        job, service = "discovery-server", "discovery-service"
        yield _probe("DiscoveryServerDown", "Discovery Server", job, service, "5m")


def _probe(name: str, what: str, job: str, service: str, lasting: str) -> JsonObject:
    matchers = f'job="blackbox-{job}",purpose="availability"'
    status = value_of(f'probe_http_status_code{{{matchers},instance="%s"}}', "instance")
    return alert(
        name,
        f"probe_success{{{matchers}}} == 0",
        lasting=lasting,
        **CRITICAL,
        service=service,
        summary=f"{what} is Down in landscape {LANDSCAPE}",
        description=(
            f"Probes of {{{{$labels.instance}}}} have failed for {lasting}. "
            f"The last HTTP status was {status}."
        ),
    )


def _metrics_exporter() -> Iterator[JsonObject]:
    blind = "Nothing is known about Seeds and Shoots, and their usage is not metered."
    yield alert(
        "GardenerMetricsExporterDown",
        'absent(up{job="gardener-metrics-exporter"} == 1)',
        lasting="15m",
        **CRITICAL,
        summary=f"The gardener-metrics-exporter is down in landscape: {LANDSCAPE}.",
        description=f"The gardener-metrics-exporter cannot be scraped. {blind}",
    )
    yield alert(
        "MissingGardenMetrics",
        'scrape_samples_scraped{job="gardener-metrics-exporter"} == 0',
        lasting="15m",
        **CRITICAL,
        summary=f"The gardener-metrics-exporter exposes no metrics in landscape: {LANDSCAPE}",
        description=f"The gardener-metrics-exporter answers without any metrics. {blind}",
    )


def _garden_status() -> Iterator[JsonObject]:
    yield alert(
        "GardenConditionStatusNotTrue",
        'garden_garden_condition{status!="True"} == 1',
        lasting="10m",
        **CRITICAL,
        summary="Garden condition {{$labels.condition}} is in state {{$labels.status}}",
        description=(
            f"Garden {{{{$labels.name}}}} in landscape {LANDSCAPE}: "
            "condition {{$labels.condition}} has not been True for 10 minutes."
        ),
    )
    yield _operation("InErrorState", 'state=~"Error|Failed"', "10m", CRITICAL, "has failed")
    yield _operation(
        "StuckProcessing", 'state="Processing"', "30m", WARNING, "is stuck in Processing"
    )


def _operation(
    suffix: str, matcher: str, lasting: str, labels: dict[str, str], what: str
) -> JsonObject:
    return alert(
        f"GardenLastOperation{suffix}",
        f"garden_garden_last_operation{{{matcher}}} == 1",
        lasting=lasting,
        **labels,
        summary=f"The last operation of Garden {{{{$labels.name}}}} {what}",
        description=(
            f"Garden {{{{$labels.name}}}} in landscape {LANDSCAPE}: operation {{{{$labels.type}}}} "
            f"has been in state {{{{$labels.state}}}} for {lasting}."
        ),
    )


def _workloads() -> Iterator[JsonObject]:
    yield alert(
        "ProjectStuckInDeletion",
        'avg(garden_projects_status{phase="Terminating"}) without (instance) and '
        'avg(garden_projects_status{phase="Terminating"} offset 1w) without (instance)',
        lasting="5m",
        **WARNING,
        summary=f"Project {{{{$labels.name}}}} is stuck in deletion in landscape {LANDSCAPE}",
        description="Project {{$labels.name}} has been in phase {{$labels.phase}} for a week.",
    )
    yield alert(
        "GardenerControllerManagerDown",
        'absent(up{job="gardener-controller-manager"} == 1)',
        lasting="10m",
        **CRITICAL,
        service="gardener-controller-manager",
        summary=f"Gardener Controller Manager is Down in landscape {LANDSCAPE}",
        description="The Gardener controller manager could not be scraped for 10 minutes.",
    )
    yield alert(
        "GardenKubeStateMetricsDown",
        'absent(up{job="kube-state-metrics"} == 1)',
        lasting="10m",
        **CRITICAL,
        summary="kube-state-metrics of the garden is down",
        description=f"kube-state-metrics in landscape {LANDSCAPE} has not been scraped "
        "for 10 minutes.",
    )
    yield alert(
        "PodFrequentlyRestarting",
        "increase(kube_pod_container_status_restarts_total[1h]) > 5",
        lasting="10m",
        **WARNING,
        summary="A pod of the garden restarts frequently",
        description=(
            f"Pod {{{{$labels.namespace}}}}/{{{{$labels.pod}}}} in landscape {LANDSCAPE} "
            "restarted more than 5 times within the last hour."
        ),
    )
    yield alert(
        "VerticalPodAutoscalerCappedRecommendation",
        f'count_over_time(({{__name__=~"{_RECOMMENDED}_uncappedtarget_.+"}} > '
        f'{{__name__=~"{_RECOMMENDED}_target_.+"}})[5m:]) == 5',
        **WARNING,
        summary="A VPA recommendation in the garden cluster is capped.",
        description=(
            "A container needs more {{$labels.unit}}s than its autoscaler may recommend: "
            f"container {{{{$labels.container}}}} of {{{{$labels.namespace}}}}/"
            f"{{{{$labels.verticalpodautoscaler}}}} in landscape {LANDSCAPE}."
        ),
    )


def _audit() -> JsonObject:
    failed = 'sum by (job) (rate(apiserver_audit_error_total{plugin="webhook"}[5m]))'
    written = "sum by (job) (rate(apiserver_audit_event_total[5m]))"
    return alert(
        "TooManyAuditlogFailures",
        f"({failed} / {written}) > 0.02",
        lasting="10m",
        **WARNING,
        summary=f"{{{{$labels.job}}}} in landscape {LANDSCAPE} fails to log audit events.",
        description="More than 2% of the API server's audit events are lost.",
    )


def _latency() -> Iterator[JsonObject]:
    for quantile in _QUANTILES:
        rate = "rate(apiserver_request_duration_seconds_bucket[5m])"
        expr = f"histogram_quantile({quantile}, {rate})"
        yield record("apiserver_latency_seconds:quantile", expr, quantile=quantile)
