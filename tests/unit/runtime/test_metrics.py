import asyncio
import math
from typing import cast

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import name_of
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache
from pergola.runtime.metrics import CONTENT_TYPE, Metrics
from pergola.testing.world import config_map


class Ticks:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def value(metrics: Metrics, sample: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(sample, labels)


def test_names_types_and_labels_match_the_dashboards() -> None:
    metrics = Metrics()
    metrics.controller("health").observe("error", 0.2)
    metrics.queue("health").added()
    metrics.webhook("/webhooks/x").observe(200, 0.001)
    metrics.webhook("/webhooks/x").judged("mutated")
    metrics.client_request("GET", "200", "api:443", 0.01)
    cache = _cache("a")

    families = {
        family.name: (family.type, {label for s in family.samples for label in s.labels} - {"le"})
        for family in text_string_to_metric_families(metrics.render().decode())
        if family.name.startswith(
            ("controller_runtime", "workqueue", "rest_client", "certwatcher", "pergola")
        )
    }

    del cache
    queue = {"name", "controller"}
    prefix = "controller_runtime"
    assert families == {
        f"{prefix}_reconcile": ("counter", {"controller", "result"}),
        f"{prefix}_reconcile_errors": ("counter", {"controller"}),
        f"{prefix}_reconcile_timeouts": ("counter", {"controller"}),
        f"{prefix}_reconcile_time_seconds": ("histogram", {"controller"}),
        f"{prefix}_max_concurrent_reconciles": ("gauge", {"controller"}),
        f"{prefix}_active_workers": ("gauge", {"controller"}),
        f"{prefix}_webhook_requests": ("counter", {"webhook", "code"}),
        f"{prefix}_webhook_latency_seconds": ("histogram", {"webhook"}),
        f"{prefix}_webhook_requests_in_flight": ("gauge", {"webhook"}),
        f"{prefix}_webhook_panics": ("counter", set()),
        "pergola_webhook_verdicts": ("counter", {"webhook", "verdict"}),
        "pergola_log_lines_lost": ("counter", set()),
        "pergola_cache_callbacks_failed": ("counter", set()),
        "pergola_cached_objects": ("gauge", {"group", "kind"}),
        "pergola_tasks": ("gauge", set()),
        "certwatcher_read_certificate": ("counter", set()),
        "certwatcher_read_certificate_errors": ("counter", set()),
        "workqueue_depth": ("gauge", queue),
        "workqueue_adds": ("counter", queue),
        "workqueue_retries": ("counter", queue),
        "workqueue_queue_duration_seconds": ("histogram", queue),
        "workqueue_work_duration_seconds": ("histogram", queue),
        "workqueue_unfinished_work_seconds": ("gauge", queue),
        "workqueue_longest_running_processor_seconds": ("gauge", queue),
        "rest_client_requests": ("counter", {"code", "method", "host"}),
        "rest_client_request_duration_seconds": ("histogram", {"verb", "host"}),
    }


def test_counters_end_in_total_and_nothing_but_samples_is_rendered() -> None:
    metrics = Metrics()
    metrics.controller("health")
    text = metrics.render().decode()
    assert (
        'controller_runtime_reconcile_total{controller="health",result="requeue_after"} 0' in text
    )
    assert "_created" not in text
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")


def test_the_process_itself_is_measured() -> None:
    text = Metrics().render().decode()
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "python_info"):
        assert f"\n{name}" in text


def test_the_objects_in_living_caches_are_counted() -> None:
    metrics = Metrics()

    def held() -> float | None:
        return value(metrics, "pergola_cached_objects", group="", kind="ConfigMap")

    before = held() or 0
    one, other = _cache("a", "b"), _cache("a")
    assert held() == before + len(one) + len(other) == before + 3
    del one
    assert held() == before + 1


def _cache(*names: str) -> Cache[str]:
    cache = Cache(cast("Client", None), CONFIG_MAP, name_of)
    for name in names:
        cache.observe(config_map(name, "default"))
    return cache


async def test_the_tasks_of_the_event_loop_are_counted() -> None:
    metrics = Metrics()
    before = value(metrics, "pergola_tasks")
    assert before is not None
    waiting = [asyncio.create_task(asyncio.Event().wait()) for _ in range(3)]
    assert value(metrics, "pergola_tasks") == before + 3
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert value(metrics, "pergola_tasks") == before


def test_no_tasks_are_reported_where_no_event_loop_runs() -> None:
    assert value(Metrics(), "pergola_tasks") is None


def test_a_controller_counts_its_runs_by_result() -> None:
    metrics = Metrics()
    health = metrics.controller("health")
    health.max_concurrent(5)
    health.active_workers.inc()
    health.observe("success", 0.2)
    health.observe("error", 100)
    health.timed_out()

    def of(sample: str, **labels: str) -> float | None:
        return value(metrics, f"controller_runtime_{sample}", controller="health", **labels)

    assert of("max_concurrent_reconciles") == 5
    assert of("active_workers") == 1
    assert [of("reconcile_total", result=r) for r in ("success", "error", "requeue")] == [1, 1, 0]
    assert of("reconcile_errors_total") == 1
    assert of("reconcile_timeouts_total") == 1
    assert of("reconcile_time_seconds_count") == 2
    assert of("reconcile_time_seconds_bucket", le="0.15") == 0
    assert of("reconcile_time_seconds_bucket", le="0.2") == 1
    assert of("reconcile_time_seconds_bucket", le="60.0") == 1


def test_a_queue_reports_the_duration_of_its_work_when_scraped() -> None:
    ticks = Ticks()
    metrics = Metrics(monotonic=ticks)
    queue = metrics.queue("mr")

    def of(sample: str, **labels: str) -> float | None:
        return value(metrics, f"workqueue_{sample}", name="mr", controller="mr", **labels)

    for _ in range(3):
        queue.added()
    queue.retried()
    queue.got(0.5)
    ticks.seconds += 10
    queue.got(10.5)
    ticks.seconds += 5

    assert (of("adds_total"), of("retries_total"), of("depth")) == (3, 1, 1)
    assert of("queue_duration_seconds_sum") == 11
    assert of("unfinished_work_seconds") == 15 + 5
    assert of("longest_running_processor_seconds") == 15

    queue.done(work_seconds=5.001)  # the younger one; the caller's clock is a little off
    assert of("unfinished_work_seconds") == 15
    assert of("longest_running_processor_seconds") == 15
    queue.done(work_seconds=15)
    assert of("unfinished_work_seconds") == 0
    assert of("longest_running_processor_seconds") == 0
    assert of("work_duration_seconds_bucket", le="10.0") == 1
    assert of("work_duration_seconds_bucket", le="1e-08") == 0
    assert of("work_duration_seconds_bucket", le="1000.0") == 2


def test_a_webhook_counts_its_responses_by_status() -> None:
    metrics = Metrics()
    webhook = metrics.webhook("/webhooks/x")
    webhook.in_flight.inc()
    for code in (200, 413, 413):
        webhook.observe(code, 0.5)

    name = "controller_runtime_webhook"
    counted = [
        value(metrics, f"{name}_requests_total", webhook="/webhooks/x", code=code)
        for code in ("200", "413", "500")
    ]
    assert counted == [1, 2, 0]
    assert value(metrics, f"{name}_requests_in_flight", webhook="/webhooks/x") == 1
    assert value(metrics, f"{name}_latency_seconds_sum", webhook="/webhooks/x") == 1.5


@pytest.mark.parametrize("code", ["200", "404", "<error>"])
def test_requests_to_an_api_server_are_counted(code: str) -> None:
    metrics = Metrics()
    for _ in range(2):
        metrics.client_request("PATCH", code, "api:443", 0.3)
    labels = {"method": "PATCH", "host": "api:443"}
    assert value(metrics, "rest_client_requests_total", code=code, **labels) == 2
    seconds = value(
        metrics, "rest_client_request_duration_seconds_sum", verb="PATCH", host="api:443"
    )
    assert seconds is not None
    assert math.isclose(seconds, 0.6)


def test_two_sets_of_metrics_in_one_process_are_separate() -> None:
    registry = CollectorRegistry()
    one, other = Metrics(registry), Metrics()
    one.client_request("GET", "200", "api", 0.1)
    assert one.registry is registry
    assert b'host="api"' not in other.render()
