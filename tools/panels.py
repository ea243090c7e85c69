"""The panels of the dashboards, by the family of the metrics that they show."""

from typing import Final, NamedTuple


class Panel(NamedTuple):
    """A panel with one query.

    Attributes:
        title: What it shows.
        expr: The query; JOB stands for the process.
        legend: The name of a series, with labels in braces.
        unit: The unit of the values, as Grafana calls it.
    """

    title: str
    expr: str
    legend: str
    unit: str


def _rate(title: str, metric: str, by: str) -> Panel:
    return Panel(title, f'sum by ({by}) (rate({metric}{{job="JOB"}}[5m]))', f"{{{{{by}}}}}", "ops")


def _slowest(title: str, metric: str, by: str) -> Panel:
    """Return the time that 99 of 100 stay below."""
    buckets = f'sum by (le, {by}) (rate({metric}_bucket{{job="JOB"}}[5m]))'
    return Panel(title, f"histogram_quantile(0.99, {buckets})", f"{{{{{by}}}}}", "s")


def _largest(title: str, metric: str, by: str, unit: str) -> Panel:
    return Panel(title, f'max by ({by}) ({metric}{{job="JOB"}})', f"{{{{{by}}}}}", unit)


_RECONCILE: Final = "controller_runtime_reconcile"
_WEBHOOK: Final = "controller_runtime_webhook"
_GARDEN: Final = "pergola_garden"

PANELS: Final = {
    "controllers": (
        _rate("Reconciliations", f"{_RECONCILE}_total", "controller"),
        _slowest("Duration of reconciliations (p99)", f"{_RECONCILE}_time_seconds", "controller"),
        _rate("Failed reconciliations", f"{_RECONCILE}_errors_total", "controller"),
        _largest("Keys that wait", "workqueue_depth", "controller", "short"),
        _largest("Busy workers", "controller_runtime_active_workers", "controller", "short"),
        _largest(
            "Longest running work", "workqueue_longest_running_processor_seconds", "controller", "s"
        ),
    ),
    "webhooks": (
        _rate("Reviews by outcome", "pergola_webhook_verdicts_total", "verdict"),
        _slowest("Duration of reviews (p99)", f"{_WEBHOOK}_latency_seconds", "webhook"),
        _rate("Answered reviews by status", f"{_WEBHOOK}_requests_total", "code"),
        _largest("Reviews in flight", f"{_WEBHOOK}_requests_in_flight", "webhook", "short"),
    ),
    "process": (
        _rate("Requests to API servers by status", "rest_client_requests_total", "code"),
        _slowest(
            "Duration of requests to API servers (p99)",
            "rest_client_request_duration_seconds",
            "verb",
        ),
    ),
    "flows": (
        _slowest("Duration of flows (p99)", "flow_duration_seconds", "flow"),
        _rate("Ended tasks by result", "flow_task_results_total", "result"),
        _slowest("Duration of tasks (p99)", "flow_task_duration_seconds", "task_id"),
    ),
    "garden": (
        _largest("Age of credentials", f"{_GARDEN}_credential_age_seconds", "credential", "s"),
        _largest(
            "Time in a rotation's phase", f"{_GARDEN}_rotation_phase_age_seconds", "rotation", "s"
        ),
        Panel(
            "Unhealthy components",
            f'count by (condition) ({_GARDEN}_component_healthy{{job="JOB"}} == 0)',
            "{{condition}}",
            "short",
        ),
        _largest(
            "Response time of the virtual API server",
            f"{_GARDEN}_api_server_response_seconds",
            "job",
            "s",
        ),
    ),
    "conditions": (
        Panel(
            "Failing conditions",
            'count by (kind, condition) (pergola_condition_failing{job="JOB"})',
            "{{kind}} {{condition}}",
            "short",
        ),
    ),
    "tokens": (
        Panel(
            "Time until the next token expires",
            'min by (job) (pergola_token_requestor_seconds_until_expiry{job="JOB"})',
            "{{job}}",
            "s",
        ),
        _rate("Failed renewals of tokens", "pergola_token_requestor_failed_renewals_total", "name"),
    ),
    "managed-resources": (
        Panel(
            "Kinds that cannot be watched",
            'max by (kind) (pergola_kind_not_watched{job="JOB"})',
            "{{kind}}",
            "short",
        ),
        _rate("Refused statuses", "pergola_managed_resource_status_refused_total", "job"),
    ),
    "aws": (
        _rate("Requests to AWS by result", "pergola_aws_requests_total", "result"),
        _slowest(
            "Duration of requests to AWS (p99)", "pergola_aws_request_duration_seconds", "service"
        ),
    ),
}
