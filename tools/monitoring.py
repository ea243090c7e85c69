"""Write alert rules and dashboards into the charts: each gets what its process exports.

    python -m tools.monitoring

The rules are in charts/alerts, by family of metrics; the panels are in tools/panels.py. In both,
JOB stands for the process, by the label that Prometheus gives its metrics.
"""

import json
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject
from tools.panels import PANELS, Panel

CHARTS: Final = Path(__file__).resolve().parents[1] / "charts"
ALERTS: Final = CHARTS / "alerts"
_EXTENSION: Final = ("process", "controllers", "conditions")
FAMILIES: Final = {
    "operator": ("process", "controllers", "webhooks", "flows", "garden", "conditions"),
    "resource-manager": (
        "process",
        "controllers",
        "webhooks",
        "tokens",
        "managed-resources",
        "conditions",
    ),
    "networking-calico": _EXTENSION,
    "networking-cilium": (*_EXTENSION, "webhooks"),
    "extension-aws": (*_EXTENSION, "flows", "aws"),
    "extension-admission-runtime": ("process", "webhooks"),
    "infra-manager": ("process", "controllers", "webhooks", "conditions", "aws"),
    "dashboard": ("process",),
}
"""The families of metrics that the process of a chart exports."""
_COLUMNS: Final = 2
_WIDTH: Final = 24 // _COLUMNS
_HEIGHT: Final = 8


def files(chart: str) -> dict[Path, str]:
    """Return the files of a chart by their paths."""
    folder = CHARTS / chart / "files"
    rules = {
        folder / "alerts" / f"{family}.yaml": (ALERTS / f"{family}.yaml").read_text()
        for family in FAMILIES[chart]
    }
    text = f"{json.dumps(dashboard(FAMILIES[chart]), indent=1)}\n"
    return {**rules, folder / "dashboard.json": text}


def dashboard(families: tuple[str, ...]) -> JsonObject:
    """Return the dashboard of a process that exports these families."""
    panels = [panel for family, found in PANELS.items() if family in families for panel in found]
    return {
        "uid": "pergola-JOB",
        "title": "Pergola / JOB",
        "tags": ["pergola"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_source()]},
        "panels": [_drawn(number, panel) for number, panel in enumerate(panels)],
    }


def _source() -> JsonObject:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }


def _drawn(number: int, panel: Panel) -> JsonObject:
    row, column = divmod(number, _COLUMNS)
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": "A", "datasource": source, "expr": panel.expr, "legendFormat": panel.legend}
        ],
    }


def main() -> None:
    """Write the files of all charts."""
    for chart in FAMILIES:
        for path, text in files(chart).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
