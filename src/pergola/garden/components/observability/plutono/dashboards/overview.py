"""The overview: availability for users, conditions of the Garden, and alerts."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.observability.plutono.dashboards.panels import (
    dashboard,
    graph,
    stat,
    table,
)

_PROBES: Final = 'probe_success{purpose="availability"}'
_FIRING: Final = 'ALERTS{alertstate="firing",topology=~"garden|seed"}'


def overview() -> JsonObject:
    """Return the dashboard for a first look at the garden."""
    return dashboard(
        "garden-overview",
        "Garden: Overview",
        [
            stat(
                "Endpoints that users reach",
                f"min by (job, instance) ({_PROBES})",
                legend="{{job}} {{instance}}",
                width=24,
                bad_below=1,
            ),
            stat(
                "Conditions of the Garden",
                'max by (condition) (garden_garden_condition{status="True"})',
                legend="{{condition}}",
                width=18,
                bad_below=1,
            ),
            stat("Firing alerts", f"count({_FIRING}) or vector(0)", width=6, bad_from=1),
            table(
                "Alerts",
                f"sum by (alertname, severity, service, project, name) ({_FIRING})",
                ("severity", "alertname", "service", "project", "name"),
                width=24,
            ),
            graph(
                "Availability",
                {"{{job}}": f"avg by (job) (avg_over_time({_PROBES}[5m]))"},
                unit="percentunit",
            ),
            graph(
                "Duration of probes",
                {"{{job}}": "max by (job) (sum by (job, instance) (probe_http_duration_seconds))"},
                unit="s",
            ),
            graph(
                "Problems of Prometheus itself",
                {"{{task}} {{job}}": "count by (task, job) (healthcheck)"},
            ),
            graph("Scrape targets that are down", {"{{job}}": "count by (job) (up == 0)"}),
        ],
    )
