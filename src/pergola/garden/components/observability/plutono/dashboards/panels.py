"""Panels of dashboards, which show queries and are laid out in rows from left to right."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject

GARDEN: Final = "prometheus-garden"
LONGTERM: Final = "prometheus-longterm"
LOGS: Final = "vali"
"""The data source of logs."""

_SCHEMA: Final = 27
_COLUMNS: Final = 24
_LETTERS: Final = "ABCDEFGH"
_GREEN: Final = "green"
_RED: Final = "red"


def graph(
    title: str,
    queries: Mapping[str, str],
    *,
    unit: str = "short",
    width: int = 12,
    height: int = 8,
    stacked: bool = False,
) -> JsonObject:
    """Return a panel with lines over time.

    Args:
        queries: The query of each legend.
        unit: The unit of the values, such as `bytes`, `s` or `percentunit`.
        width: The number of columns, out of 24 in a row.
    """
    axis = {"format": unit, "min": 0, "show": True}
    return {
        **_panel("graph", title, width, height, queries),
        "fill": 7 if stacked else 1,
        "legend": {"show": True, "alignAsTable": True, "current": True, "values": True},
        "lines": True,
        "linewidth": 1,
        "nullPointMode": "null as zero" if stacked else "null",
        "stack": stacked,
        "tooltip": {"shared": True, "sort": 2},
        "xaxis": {"mode": "time", "show": True},
        "yaxes": [axis, {"format": "short", "show": False}],
    }


def stat(
    title: str,
    query: str,
    *,
    legend: str = "",
    unit: str = "short",
    width: int = 6,
    height: int = 4,
    bad_below: float | None = None,
    bad_from: float | None = None,
) -> JsonObject:
    """Return a panel with the current value of each series.

    Args:
        bad_below: Lower values are red.
        bad_from: Values from here on are red.
    """
    defaults = {"unit": unit, "thresholds": _thresholds(bad_below, bad_from)}
    return {
        **_panel("stat", title, width, height, {legend: query}, instant=True),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {
            "colorMode": "background",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "value_and_name" if legend else "value",
        },
    }


def _thresholds(bad_below: float | None, bad_from: float | None) -> JsonObject:
    first, then, limit = (_RED, _GREEN, bad_below) if bad_from is None else (_GREEN, _RED, bad_from)
    if limit is None:
        return {"mode": "absolute", "steps": [{"color": "blue", "value": None}]}
    steps = [{"color": first, "value": None}, {"color": then, "value": limit}]
    return {"mode": "absolute", "steps": steps}


def table(
    title: str, query: str, labels: Sequence[str], *, width: int = 12, height: int = 8
) -> JsonObject:
    """Return a panel with one row for each series of an instant query.

    Args:
        labels: The labels to show as columns, in order.
    """
    shown = {label: index for index, label in enumerate(labels)}
    keep = {"include": {"names": [*labels, "Value"]}}
    return {
        **_panel("table", title, width, height, {"": query}, instant=True),
        "options": {"showHeader": True},
        "transformations": [
            {"id": "filterFieldsByName", "options": keep},
            {"id": "organize", "options": {"indexByName": shown}},
        ],
    }


def logs(title: str, query: str, *, height: int = 20) -> JsonObject:
    """Return a panel with the lines that a log query finds."""
    return {
        **_panel("logs", title, _COLUMNS, height, {"": query}),
        "datasource": LOGS,
        "options": {"showTime": True, "sortOrder": "Descending", "wrapLogMessage": True},
    }


def _panel(
    kind: str,
    title: str,
    width: int,
    height: int,
    queries: Mapping[str, str],
    *,
    instant: bool = False,
) -> JsonObject:
    return {
        "type": kind,
        "title": title,
        "datasource": GARDEN,
        "gridPos": {"w": width, "h": height},
        "targets": [
            _target(letter, legend, query, instant=instant)
            for letter, (legend, query) in zip(_LETTERS, queries.items(), strict=False)
        ],
    }


def _target(letter: str, legend: str, query: str, *, instant: bool) -> JsonObject:
    shape = {"instant": True, "format": "table" if not legend else "time_series"}
    return {
        "refId": letter,
        "expr": query,
        "legendFormat": legend,
        **(shape if instant else {}),
    }


def choice(name: str, label: str, query: str) -> JsonObject:
    """Return a dashboard variable whose values come from a query.

    Args:
        label: The text that users see.
        query: The query, such as `label_values(up, job)`.
    """
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": GARDEN,
        "query": query,
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
    }


def text_choice(name: str, label: str) -> JsonObject:
    """Return a dashboard variable that users type in."""
    return {"name": name, "label": label, "type": "textbox", "query": ""}


def dashboard(
    uid: str,
    title: str,
    panels: Iterable[JsonObject],
    *variables: JsonObject,
    since: str = "now-3h",
) -> JsonObject:
    """Return a dashboard.

    Args:
        uid: The part of its URL that identifies it.
        since: The start of the initial time range.
    """
    return {
        "uid": uid,
        "title": title,
        "tags": ["garden"],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "timezone": "utc",
        "refresh": "1m",
        "time": {"from": since, "to": "now"},
        "templating": {"list": list(variables)},
        "panels": list(_laid_out(panels)),
    }


def _laid_out(panels: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield the panels, each with an id and a position, in rows as high as their highest panel."""
    x = y = highest = 0
    for number, panel in enumerate(panels, start=1):
        size = panel["gridPos"]
        if x + size["w"] > _COLUMNS:
            x, y, highest = 0, y + highest, 0
        yield {**panel, "id": number, "gridPos": {**size, "x": x, "y": y}}
        x, highest = x + size["w"], max(highest, size["h"])
