"""The metrics of a controller process, under the names that existing dashboards use.

Names, labels, types and buckets match controller-runtime (spec 10 §13.3), so that existing
dashboards and alerts work. The hot path uses only pre-bound children.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypeVar, cast

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from pergola.runtime.caching.cache import cached_objects
from pergola.runtime.caching.isolation import callbacks_failed
from pergola.runtime.logging import lines_lost
from pergola.runtime.summed_metrics import Family, Summed

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

M = TypeVar("M")
Others = Callable[[], Awaitable[Sequence[Sequence[Family]]]]
"""Reads the metrics of other processes."""
Result = Literal["success", "error", "requeue", "requeue_after"]
RESULTS: Final[tuple[Result, ...]] = ("success", "error", "requeue", "requeue_after")

_RECONCILE_SECONDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25),
    *(30, 40, 50, 60),
)
_QUEUE_SECONDS: Final = tuple(10.0**exponent for exponent in range(-8, 4))
_REQUEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)

Monotonic = Callable[[], float]


class Metrics:
    """All metrics of one process.

    Args:
        registry: where to register them; a new registry if None.
        monotonic: a monotonic clock in seconds.
    """

    def __init__(
        self, registry: CollectorRegistry | None = None, *, monotonic: Monotonic = time.monotonic
    ) -> None:
        # Omits the second series per counter and histogram, which no dashboard reads.
        disable_created_metrics()  # type: ignore[no-untyped-call] # the library has no annotation
        self.registry = registry or CollectorRegistry()
        self._monotonic = monotonic
        self._families = _Families(self.registry)
        self._requests: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}
        self._registered: dict[object, Any] = {}
        self._others: list[Others] = []
        self.registry.register(_Defects())
        self.registry.register(_Held())
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def controller(self, name: str) -> "ControllerMetrics":
        """Return the metrics of a controller and create all of its series."""
        return ControllerMetrics(self._families, name)

    def queue(self, name: str) -> "QueueMetrics":
        """Return the metrics of a controller's queue."""
        return QueueMetrics(self._families, name, self._monotonic)

    def webhook(self, path: str) -> "WebhookMetrics":
        """Return the metrics of the webhook served at `path`."""
        return WebhookMetrics(self._families, path)

    def certificates(self) -> "CertificateMetrics":
        """Return the metrics of the serving certificate."""
        return CertificateMetrics(self._families)

    def register(self, of: Callable[[CollectorRegistry], M]) -> M:
        """Return a set of metrics, registered on first use, once per process."""
        if of not in self._registered:
            self._registered[of] = of(self.registry)
        found: M = self._registered[of]
        return found

    def client_request(self, method: str, code: str, host: str, seconds: float) -> None:
        """Count a request to an API server; `code` is `<error>` if it was not answered."""
        known = self._requests.get((method, code, host))
        if known is None:
            known = self._families.request(method, code, host)
            self._requests[method, code, host] = known
        total, duration = known
        total.inc()
        duration.observe(seconds)

    def join(self, others: "Others") -> None:
        """Include the metrics of other processes in `render_all`."""
        self._others.append(others)

    def render(self) -> bytes:
        """Return this process's metrics in the Prometheus text format; see `CONTENT_TYPE`."""
        return generate_latest(self.registry)

    async def render_all(self) -> bytes:
        """Return the metrics summed over all processes, in the same format."""
        if not self._others:
            return self.render()
        families = [family for others in self._others for family in await others()]
        return generate_latest(cast("CollectorRegistry", Summed(self.registry, families)))


class ControllerMetrics:
    """The metrics of one controller.

    Attributes:
        active_workers: a gauge to increment while a key is reconciled.
    """

    def __init__(self, families: "_Families", name: str) -> None:
        self._totals = {r: families.reconcile_total.labels(name, r) for r in RESULTS}
        self._errors = families.reconcile_errors.labels(name)
        self._timeouts = families.reconcile_timeouts.labels(name)
        self._seconds = families.reconcile_seconds.labels(name)
        self._max_concurrent = families.max_concurrent.labels(name)
        self.active_workers: Gauge = families.active_workers.labels(name)

    def max_concurrent(self, workers: int) -> None:
        """Set the maximum number of concurrent reconciliations."""
        self._max_concurrent.set(workers)

    def observe(self, result: Result, seconds: float) -> None:
        """Observe a finished reconciliation."""
        self._totals[result].inc()
        self._seconds.observe(seconds)
        if result == "error":
            self._errors.inc()

    def timed_out(self) -> None:
        """Count a reconciliation that exceeded its deadline; it is also observed as an error."""
        self._timeouts.inc()


class QueueMetrics:
    """The metrics of one queue; unfinished work is summed at each scrape."""

    def __init__(self, families: "_Families", name: str, monotonic: Monotonic) -> None:
        self._monotonic = monotonic
        self._depth = 0
        self._started: list[float] = []
        self._adds = families.queue_adds.labels(name, name)
        self._retries = families.queue_retries.labels(name, name)
        self._waited = families.queue_seconds.labels(name, name)
        self._worked = families.work_seconds.labels(name, name)
        families.queue_depth.labels(name, name).set_function(lambda: self._depth)
        families.unfinished_work.labels(name, name).set_function(self._unfinished)
        families.longest_running.labels(name, name).set_function(self._longest)

    def added(self) -> None:
        """Count an added key."""
        self._depth += 1
        self._adds.inc()

    def got(self, waited_seconds: float) -> None:
        """Observe that a worker took a key."""
        self._depth -= 1
        self._started.append(self._monotonic())
        self._waited.observe(waited_seconds)

    def done(self, work_seconds: float) -> None:
        """Observe that a worker finished a key."""
        began = self._monotonic() - work_seconds
        # Keys are unknown here: assume that the run whose start is closest to that time ended.
        self._started.remove(min(self._started, key=lambda started: abs(started - began)))
        self._worked.observe(work_seconds)

    def retried(self) -> None:
        """Count a key that failed and will be retried."""
        self._retries.inc()

    def _unfinished(self) -> float:
        now = self._monotonic()
        return sum(now - started for started in self._started)

    def _longest(self) -> float:
        return self._monotonic() - self._started[0] if self._started else 0.0


class WebhookMetrics:
    """The metrics of one webhook.

    Attributes:
        in_flight: a gauge to increment while a review is processed.
    """

    def __init__(self, families: "_Families", path: str) -> None:
        self._path = path
        self._requests = families.webhook_requests
        self._seconds = families.webhook_seconds.labels(path)
        self._by_code = {code: self._requests.labels(path, str(code)) for code in (200, 500)}
        self._verdicts = families.webhook_verdicts
        self._by_verdict: dict[str, Counter] = {}
        self._panics = families.webhook_panics
        self.in_flight: Gauge = families.webhook_in_flight.labels(path)

    def observe(self, code: int, seconds: float) -> None:
        """Observe the HTTP status of an answered review."""
        if code not in self._by_code:
            self._by_code[code] = self._requests.labels(self._path, str(code))
        self._by_code[code].inc()
        self._seconds.observe(seconds)

    def judged(self, verdict: str) -> None:
        """Count the outcome of a review, such as `mutated` or `denied`."""
        if verdict not in self._by_verdict:
            self._by_verdict[verdict] = self._verdicts.labels(self._path, verdict)
        self._by_verdict[verdict].inc()

    def panicked(self) -> None:
        """Count an unexpected error of a handler."""
        self._panics.inc()


class CertificateMetrics:
    """The metrics of a serving certificate."""

    def __init__(self, families: "_Families") -> None:
        self._reads = families.certificate_reads
        self._errors = families.certificate_errors

    def read(self) -> None:
        """Count a read of the certificate files."""
        self._reads.inc()

    def failed(self) -> None:
        """Count a read of unusable certificate files."""
        self._errors.inc()


class _Defects(Collector):
    """Process-wide counts of errors that ended nothing."""

    def collect(self) -> Iterator[CounterMetricFamily]:
        lost = CounterMetricFamily("pergola_log_lines_lost", "Log lines that were not written")
        lost.add_metric([], lines_lost())
        yield lost
        failed = CounterMetricFamily(
            "pergola_cache_callbacks_failed", "Functions that failed on an object of a cache"
        )
        failed.add_metric([], callbacks_failed())
        yield failed


class _Held(Collector):
    """The tasks and cached objects of this process; growth without a cause is a leak."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        tasks = GaugeMetricFamily("pergola_tasks", "Asyncio tasks that have not ended")
        with suppress(RuntimeError):  # no event loop runs
            tasks.add_metric([], len(asyncio.all_tasks()))
        yield tasks
        objects = GaugeMetricFamily(
            "pergola_cached_objects", "Objects in caches", labels=["group", "kind"]
        )
        for gvk, number in cached_objects().items():
            objects.add_metric([gvk.group, gvk.kind], number)
        yield objects


class _Families:
    """The metric families of a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        prefix, of = "controller_runtime_reconcile", ["controller"]
        self.reconcile_total = self._counter(
            f"{prefix}_total", "Reconciliations by result", [*of, "result"]
        )
        self.reconcile_errors = self._counter(
            f"{prefix}_errors_total", "Failed reconciliations", of
        )
        self.reconcile_timeouts = self._counter(
            f"{prefix}_timeouts_total", "Reconciliations that exceeded their deadline", of
        )
        self.reconcile_seconds = self._histogram(
            f"{prefix}_time_seconds", "How long reconciliations take", of, _RECONCILE_SECONDS
        )
        self.max_concurrent = self._gauge(
            "controller_runtime_max_concurrent_reconciles", "How many may run at once", of
        )
        self.active_workers = self._gauge(
            "controller_runtime_active_workers", "How many run now", of
        )
        self._declare_queue()
        self._declare_webhooks()
        self._declare_client()

    def request(self, method: str, code: str, host: str) -> tuple[Counter, Histogram]:
        return (
            self._client_requests.labels(code, method, host),
            self._client_seconds.labels(method, host),
        )

    def _declare_queue(self) -> None:
        of = ["name", "controller"]
        self.queue_depth = self._gauge("workqueue_depth", "Keys that wait for a worker", of)
        self.queue_adds = self._counter("workqueue_adds_total", "Keys that were added", of)
        self.queue_retries = self._counter("workqueue_retries_total", "Keys that were retried", of)
        self.queue_seconds = self._histogram(
            "workqueue_queue_duration_seconds", "How long keys wait", of, _QUEUE_SECONDS
        )
        self.work_seconds = self._histogram(
            "workqueue_work_duration_seconds", "How long keys are worked on", of, _QUEUE_SECONDS
        )
        self.unfinished_work = self._gauge(
            "workqueue_unfinished_work_seconds", "How long all running work has taken", of
        )
        self.longest_running = self._gauge(
            "workqueue_longest_running_processor_seconds",
            "How long the oldest running work has taken",
            of,
        )

    def _declare_webhooks(self) -> None:
        prefix = "controller_runtime_webhook"
        self.webhook_requests = self._counter(
            f"{prefix}_requests_total", "Answered reviews by HTTP status", ["webhook", "code"]
        )
        self.webhook_seconds = self._histogram(
            f"{prefix}_latency_seconds",
            "How long answering a review takes",
            ["webhook"],
            Histogram.DEFAULT_BUCKETS,
        )
        self.webhook_in_flight = self._gauge(
            f"{prefix}_requests_in_flight", "Reviews that are being answered", ["webhook"]
        )
        self.webhook_panics = self._counter(
            f"{prefix}_panics_total", "Reviews whose handler raised an unexpected error", []
        )
        self.webhook_verdicts = self._counter(
            "pergola_webhook_verdicts_total", "Reviews by their outcome", ["webhook", "verdict"]
        )
        self.certificate_reads = self._counter(
            "certwatcher_read_certificate_total", "Reads of the serving certificate", []
        )
        self.certificate_errors = self._counter(
            "certwatcher_read_certificate_errors_total",
            "Reads of the serving certificate that failed",
            [],
        )

    def _declare_client(self) -> None:
        self._client_requests = self._counter(
            "rest_client_requests_total", "Requests to API servers", ["code", "method", "host"]
        )
        self._client_seconds = self._histogram(
            "rest_client_request_duration_seconds",
            "How long API servers take to answer",
            ["verb", "host"],
            _REQUEST_SECONDS,
        )

    def _counter(self, name: str, documentation: str, labels: list[str]) -> Counter:
        return Counter(name, documentation, labels, registry=self._registry)

    def _gauge(self, name: str, documentation: str, labels: list[str]) -> Gauge:
        return Gauge(name, documentation, labels, registry=self._registry)

    def _histogram(
        self, name: str, documentation: str, labels: list[str], buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(name, documentation, labels, buckets=buckets, registry=self._registry)
