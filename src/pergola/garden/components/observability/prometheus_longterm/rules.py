"""The unavailability of Shoots' API servers, as a share of time.

`probe_failure` is 1 while an API server is unavailable. Its sum over time is kept both for fixed
periods, in which a label with the period's number starts a new series, and for moving windows.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.monitoring import LONGTERM, prometheus_rule, record, rules

_RUN: Final = "probe_failure:run"
_TIME: Final = "probe_failure:run:time"
_TOTAL: Final = "probe_failure:run:time:total"
_PERCENT: Final = "probe_failure:run:time:total:percent"
_COUNTED: Final = {
    "iaas": "garden_shoot_info",
    "project": "garden_shoot_info",
    "purpose": "garden_shoot_condition",
    "window": _PERCENT,
    "term": _PERCENT,
}
_DAY: Final = "60 / 60 / 24"
_PERIODS: Final = {"day": _DAY, "week": f"{_DAY} / 7", "week4": f"{_DAY} / 7 / 4"}
"""The factors that convert seconds to each period."""
_OFFSETS: Final = {"day": "1d", "week": "1w", "week4": "4w"}
_FIRST_MONDAY: Final = "4 * 24 * 60 * 60"
"""Seconds from the Unix epoch, a Thursday, to the first Monday."""
_INTERVAL: Final = 60
"""Seconds between two evaluations."""


def longterm_rules() -> tuple[JsonObject, ...]:
    """Return the rules for availability, and for the values of dashboard variables."""
    counts = (record(f"{by}:info", f"count by ({by}) ({of})") for by, of in _COUNTED.items())
    return (
        prometheus_rule(LONGTERM, "recording", rules("info", *counts)),
        prometheus_rule(LONGTERM, "sla", rules("error_budget", *_failures(), *_shares())),
    )


def _failures() -> Iterator[JsonObject]:
    """Yield the rules that count seconds of failure; a minute's offset allows for late scrapes."""
    condition = 'garden_shoot_condition{operation="Reconcile",condition="APIServerAvailable"}'
    yield record("probe_failure", f"min without (instance, job) ({condition} offset 1m) < bool 1")
    yield record(_RUN, "probe_failure")
    for period, divisor in _PERIODS.items():
        yield record(f"{_RUN}:{period}", _numbered(period, divisor))
    yield record(f"{_RUN}:yearmonth", _with_month())
    yield record(_TIME, _all_periods())
    last = f"max_over_time({_TOTAL}[10m])"
    yield record(_TOTAL, f"{_TIME} * {_INTERVAL} + ({last} or {_TIME} * 0)")


def _numbered(period: str, divisor: str) -> str:
    """Return the expression that adds a label with the number of the period since 1970."""
    seconds = f"timestamp({_RUN})"
    since_monday = seconds if period == "day" else f"({seconds} - {_FIRST_MONDAY})"
    number = f'count_values without () ("{period}", floor({since_monday} / {divisor}))'
    return f"{_RUN} + ignoring ({period}) group_right () {number} * 0"


def _with_month() -> str:
    month = f'count_values without () ("month", month(timestamp({_RUN})))'
    year = f'count_values without () ("year", year(timestamp({month})))'
    return f"{_RUN} + ignoring (year, month) group_right () {year} * 0"


def _all_periods() -> str:
    moving = f'label_replace({_RUN}, "window", "moving", "__name__", ".*")'
    return " or ".join((moving, *(f"{_RUN}:{each}" for each in (*_PERIODS, "yearmonth"))))


def _shares() -> Iterator[JsonObject]:
    """Yield the rules for the share of failure in fixed periods and in moving windows."""
    for period, divisor in _PERIODS.items():
        total = f'sum without ({period}) ({_TOTAL}{{{period}!=""}})'
        yield record(_PERCENT, f"{total} / {divisor}", window="fixed", term=period)
    total = f'sum without (year, month) ({_TOTAL}{{year!="",month!=""}})'
    days = f"days_in_month(timestamp({total}))"
    yield record(_PERCENT, f"{total} / {_DAY} / {days}", window="fixed", term="year_month")
    moving = f'{_TOTAL}{{window="moving"}}'
    for period, divisor in _PERIODS.items():
        before = f"({moving} offset {_OFFSETS[period]} or {moving} * 0)"
        yield record(_PERCENT, f"({moving} - {before}) / {divisor}", term=period)
