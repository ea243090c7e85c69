"""Metering: the resource usage of Shoots and Seeds in the current month, as Seeds report it.

Rules accumulate: each adds its measurement to its own last value, which remains available for half
an hour after a restart. Series continue until the end of the month even if their Shoot is deleted,
so that the long-term Prometheus gets the month's final values.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.monitoring import GARDEN, prometheus_rule, record, rules

_SECONDS: Final = 60
"""The interval between evaluations."""
_MONTH: Final = "_year_month2"
"""A series of value 0 with the current `year` and `month` as labels."""
_NOW: Final = "_timestamp"
_SHOOTS: Final = "_garden_shoot_info"
"""One series per Shoot, even while two exporters report it."""
_SINCE: Final = "garden_shoot_info:timestamp"
"""The same series with a label for the time since which its labels are unchanged."""
_OF_SHOOTS: Final = (
    "shoot_uid",
    "project",
    "name",
    "iaas",
    "region",
    "seed",
    "seed_iaas",
    "seed_region",
    "failure_tolerance",
    "version",
    "cost_object_type",
    "cost_object",
    "cost_object_owner",
    "gardener_version",
    "is_seed",
    "is_workerless",
    "is_hibernated",
)
"""The labels by which shoots are billed."""
_DETAILS: Final = (
    "project, name, failure_tolerance, version, cost_object, cost_object_owner, iaas, region, "
    "seed_iaas, seed_region, is_seed, timestamp"
)
_REPORTED: Final = (
    "cpu_requests",
    "cpu_usage",
    "memory_requests",
    "memory_usage",
    "network_receive",
    "network_transmit",
    "persistent_volume_claims",
    "persistent_volume_usage",
    "working_set_memory",
)
_AVERAGED: Final = (
    "cpu_usage",
    "cpu_requests",
    "memory_usage",
    "working_set_memory",
    "memory_requests",
    "network_transmit",
    "network_receive",
    "persistent_volume_usage",
)
_OF_NODES: Final = ("node_capacity", "node_cp_usage", "node_cp_requests")


def metering_rules() -> JsonObject:
    """Return the metering rules."""
    each = (
        *_shoots(),
        *(_with_details(what) for what in _REPORTED),
        *_durations(),
        *_averages("persistent_volume_claims", "disk_usage_seconds"),
        *(rule for what in _AVERAGED for rule in _averages(what, "memory_usage_seconds")),
        *(rule for what in _OF_NODES for rule in _nodes(what)),
    )
    group = rules("metering.rules.meta", *each, interval=f"{_SECONDS}s")
    return prometheus_rule(GARDEN, "metering-meta", group)


def _shoots() -> Iterator[JsonObject]:
    month = 'count_values without () ("month", month(timestamp(vector(0))))'
    yield record(_MONTH, f'count_values without () ("year", year(timestamp({month}))) * 0')
    yield record(_SHOOTS, f"group(garden_shoot_info) by ({', '.join(_OF_SHOOTS)}) * 0")
    yield _this_month(f"{_SHOOTS}", "garden_shoot_info:this_month")
    yield record(_NOW, 'count_values without () ("timestamp", round(timestamp(vector(0)))) * 0')
    began = f"{_SHOOTS} + on () group_left (timestamp) {_NOW}"
    yield record(
        _SINCE,
        f"({_last(_SINCE)} or ignoring (timestamp) {began}) and ignoring (timestamp) {_SHOOTS}",
    )
    yield _this_month(_SINCE, f"{_SINCE}:this_month")


def _this_month(series: str, name: str) -> JsonObject:
    """Return the rule that adds labels of the month to a series and keeps it for the month."""
    now = f"({series} + on () group_left (year, month) {_MONTH})"
    return record(name, f"{now} or {_last(name)} + on (year, month) group_left () {_MONTH}")


def _kept_this_month(series: str) -> JsonObject:
    """Return the rule that keeps a series with labels of the month until the month ends."""
    name = f"{series}:this_month"
    return record(name, f"{series} or {_last(name)} + on (year, month) group_left () {_MONTH}")


def _last(series: str) -> str:
    return f"last_over_time({series}[30m])"


def _with_details(what: str) -> JsonObject:
    reported = f"metering:{what}:sum_by_namespace"
    details = f"on (shoot_uid, seed) group_left ({_DETAILS}) {_SINCE}"
    return record(f"{reported}:meta", f'{reported}{{shoot_uid!=""}} + {details}')


def _durations() -> Iterator[JsonObject]:
    """Yield the rules that count the seconds for which memory and volumes were in use."""
    memory, disk = "metering:memory_usage_seconds:meta", "metering:disk_usage_seconds:meta"
    yield _duration(memory, "metering:working_set_memory:sum_by_namespace:meta")
    yield _duration(disk, "metering:persistent_volume_claims:sum_by_namespace:meta")
    yield _kept_this_month(memory)
    yield _kept_this_month(disk)


def _duration(name: str, used: str) -> JsonObject:
    return _sum(name, f"({used} > bool 0) * {_SECONDS}", used)


def _sum(name: str, added: str, series: str) -> JsonObject:
    """Return the rule that adds to its own last value, or to 0 for a new series."""
    return record(name, f"{added} + ({_last(name)} or {series} * 0)")


def _averages(what: str, duration: str) -> Iterator[JsonObject]:
    series = f"metering:{what}:sum_by_namespace:meta"
    total, average = f"{series}:sum_over_time", f"{series}:avg_over_time"
    yield _sum(total, series, series)
    yield record(average, f"{total} * {_SECONDS} / (metering:{duration}:meta != 0)")
    yield _kept_this_month(average)


def _nodes(what: str) -> Iterator[JsonObject]:
    series = f"metering:{what}:sum_by_instance_type"
    total, count = f"{series}:sum_over_time", f"{series}:count_over_time"
    yield _sum(total, series, series)
    yield _sum(count, f"1 + {series} * 0", series)
    yield _kept_this_month(count)
    yield record(f"{series}:avg_over_time", f"{total} / {count}")
    yield _kept_this_month(f"{series}:avg_over_time")
