"""Dashboards for Plutono, in the format of Grafana 7."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import orjson

from pergola.api.objects import JsonObject

_SCHEMA: Final = 27
_COLUMNS: Final = 2
_WIDTH: Final = 12
_HEIGHT: Final = 8


class Panel(NamedTuple):
    """A graph of a dashboard.

    Attributes:
        query: The PromQL expression.
        legend: The name of a line, with labels such as `{{pod}}`.
        unit: The unit of the left axis, in Plutono's notation, e.g. `bytes`.
    """

    title: str
    query: str
    legend: str
    unit: str = "short"


def dashboard(uid: str, title: str, tags: Sequence[str], panels: Sequence[Panel]) -> str:
    """Return a dashboard of the last hour as JSON, with two graphs per row."""
    content: JsonObject = {
        "uid": uid,
        "title": title,
        "tags": list(tags),
        "schemaVersion": _SCHEMA,
        "refresh": "1m",
        "time": {"from": "now-1h", "to": "now"},
        "panels": [_panel(index, panel) for index, panel in enumerate(panels)],
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()


def _panel(index: int, panel: Panel) -> JsonObject:
    row, column = divmod(index, _COLUMNS)
    return {
        "id": index + 1,
        "type": "graph",
        "title": panel.title,
        "datasource": "prometheus",
        "gridPos": {"x": _WIDTH * column, "y": _HEIGHT * row, "w": _WIDTH, "h": _HEIGHT},
        "targets": [{"expr": panel.query, "legendFormat": panel.legend, "refId": "A"}],
        "yaxes": [{"format": panel.unit, "min": 0}, {"format": "short"}],
    }
