"""Metrics of flows: delays, durations and results of tasks."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from pergola.flow.outcome import Ended, Outcome, Result

_SECONDS: Final = (0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 90, 120, 180, 300, 600, 900, 1800, 3600)


class FlowMetrics:
    """The metrics of all flows of a process (spec 20 §9.3); `of` returns an observer of a run."""

    def __init__(self, registry: CollectorRegistry) -> None:
        of = ["flow", "task_id"]
        self._delay = Histogram(
            "flow_task_delay_seconds",
            "How long after its flow a task starts",
            [*of, "skipped"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._duration = Histogram(
            "flow_task_duration_seconds",
            "How long tasks take",
            of,
            buckets=_SECONDS,
            registry=registry,
        )
        self._results = Counter(
            "flow_task_results_total", "Tasks by result", [*of, "result"], registry=registry
        )
        self._flows = Histogram(
            "flow_duration_seconds",
            "How long flows take",
            ["flow"],
            buckets=_SECONDS,
            registry=registry,
        )

    def of(self, flow: str) -> "FlowObserver":
        """Return an observer that counts a run of the named flow."""
        return FlowObserver(self, flow)

    def task_ended(self, flow: str, task: str, ended: Ended) -> None:
        """Count a task that ended or was skipped."""
        is_skipped = ended.outcome is Outcome.SKIPPED
        self._delay.labels(flow, task, str(is_skipped).lower()).observe(ended.started)
        if is_skipped:
            return
        self._duration.labels(flow, task).observe(ended.seconds)
        result = "success" if ended.outcome is Outcome.DONE else "error"
        self._results.labels(flow, task, result).inc()

    def flow_finished(self, result: Result) -> None:
        """Count a flow that ended, with or without errors."""
        self._flows.labels(result.flow).observe(result.seconds)


class FlowObserver:
    """Counts the events of one run."""

    def __init__(self, metrics: FlowMetrics, flow: str) -> None:
        self._metrics = metrics
        self._flow = flow

    def started(self, task: str) -> None:
        """Do nothing: a task is counted when it ends."""

    def ended(self, task: str, ended: Ended) -> None:
        """Count a task that ended or was skipped."""
        self._metrics.task_ended(self._flow, task, ended)

    def finished(self, result: Result) -> None:
        """Count the run."""
        self._metrics.flow_finished(result)
