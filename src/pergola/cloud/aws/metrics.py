"""Metrics of requests to AWS: their number, results and durations."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS: Final = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class AwsMetrics:
    """The metrics of all clients of a process; pass `request` to a client as its observer."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "pergola_aws_requests_total",
            "Attempts of requests to AWS by result: success, or AWS's error code",
            ["service", "operation", "result"],
            registry=registry,
        )
        self._seconds = Histogram(
            "pergola_aws_request_duration_seconds",
            "How long AWS takes to answer",
            ["service"],
            buckets=_SECONDS,
            registry=registry,
        )

    def request(self, service: str, operation: str, seconds: float, result: str) -> None:
        """Count an attempt and its duration."""
        self._requests.labels(service, operation, result).inc()
        self._seconds.labels(service).observe(seconds)
