"""The dashboards of Seeds and Shoots, from the metrics of gardener-metrics-exporter."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.observability.plutono.dashboards.panels import (
    LONGTERM,
    choice,
    dashboard,
    graph,
    stat,
    table,
)

_AVAILABLE: Final = 'condition="APIServerAvailable",operation="Reconcile"'
_PROJECT: Final = choice("project", "Project", "label_values(garden_shoot_info, project)")


def seeds() -> JsonObject:
    """Return the dashboard of Seeds."""
    used = 'sum by (name) (garden_seed_usage{resource="shoot"})'
    return dashboard(
        "garden-seeds",
        "Garden: Seeds",
        [
            stat("Seeds", "count(garden_seed_info)"),
            stat("Shoots", "count(garden_shoot_info)"),
            stat("Seeds with problems", _count("garden_seed_condition <= 0"), bad_from=1),
            stat(
                "Seeds that are not federated",
                _count('up{job="prometheus-aggregate"} == 0'),
                bad_from=1,
            ),
            graph("Shoots", {"{{name}}": used}, stacked=True),
            graph(
                "Use of capacity",
                {"{{name}}": f"{used} / sum by (name) (garden_seed_capacity)"},
                unit="percentunit",
            ),
            table(
                "Conditions that are not met",
                "garden_seed_condition <= 0",
                ("name", "condition"),
                width=24,
            ),
        ],
    )


def shoots() -> JsonObject:
    """Return the dashboard of Shoots."""
    conditions = f'garden_shoot_condition{{{_AVAILABLE},project=~"$project"}}'
    share = 'probe_failure:run:time:total:percent{window="fixed",project=~"$project"}'
    failure = graph("Unavailability by period", {"{{term}}": f"avg by (term) ({share})"})
    return dashboard(
        "garden-shoots",
        "Garden: Shoots",
        [
            stat("Shoots", 'count(garden_shoot_info{project=~"$project"})', width=8),
            stat(
                "Shoots that are not available", _count(f"{conditions} == 0"), width=8, bad_from=1
            ),
            stat("Projects", "count(count by (project) (garden_shoot_info))", width=8),
            graph(
                "Shoots by infrastructure",
                {"{{iaas}}": 'count by (iaas) (garden_shoot_info{project=~"$project"})'},
                stacked=True,
            ),
            graph(
                "Available Shoots",
                {"{{purpose}}": f"avg by (purpose) ({conditions})"},
                unit="percentunit",
            ),
            {**failure, "datasource": LONGTERM},
            table(
                "Conditions that are not met",
                'garden_shoot_condition{operation="Reconcile",project=~"$project"} == 0',
                ("project", "name", "condition", "iaas", "purpose"),
            ),
        ],
        _PROJECT,
    )


def _count(query: str) -> str:
    return f"count({query}) or vector(0)"
