"""Work in the maintenance window: schedules of backups, and evictions that resize pods."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.gardens import GARDEN
from conformance.strategies.kubernetes import some
from pergola.api.objects import JsonObject, JsonValue
from pergola.api.operator_v1alpha1 import default_garden, garden_from
from pergola.api.time_of_day import DAY, time_of_day
from pergola.garden.components.etcds.schedules import defragmentation, full_snapshot
from pergola.operator.eviction_requirements import (
    IN_WINDOW,
    NEVER,
    RESTRICTION,
    WINDOW,
    decide,
    seen,
)

_HOURS: Final = st.integers(0, 23)
_MINUTES: Final = st.sampled_from([0, 1, 5, 30, 54, 55, 59])
_TIMES: Final = st.builds(
    lambda hour, minute, second, sign, zone: f"{hour:02}{minute:02}{second:02}{sign}{zone}00",
    _HOURS,
    _MINUTES,
    st.sampled_from([0, 0, 0, 59]),
    st.sampled_from(["+", "+", "-"]),
    st.sampled_from(["00", "01", "05", "12"]),
)
_MALFORMED: Final = st.sampled_from(
    [
        *("", "22000+0100", "220000Z", "220000+01:00", "220000+01", "220000", "2200+0100"),
        *(
            "240000+0000",
            "220060+0000",
            "220000+0160",
            "220000+2400",
            " 220000+0100",
            "220000 0100",
        ),
        *("220000.5+0000", "220000+0000 ", "\uff12\uff120000+0000", "220000+000000"),
    ]
)
_WHOLE_DAYS: Final = st.sampled_from(
    [("000000+0000", "235959+0000"), ("010000+0100", "005959+0100"), ("220000+0000", "220000+0000")]
)
_WINDOWS: Final = st.one_of(st.tuples(_TIMES, _TIMES), st.tuples(_TIMES, _TIMES), _WHOLE_DAYS)


class Schedules:
    """When etcds are defragmented and backed up completely."""

    name = "schedules"
    ask = "schedules"
    title = "Schedules of etcds"
    of: OracleModule = GARDENER
    code = ("pergola.garden.components.etcds.schedules", "pergola.api.time_of_day")

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return windows of Gardens."""
        return st.builds(
            lambda window, uid, created: {
                "begin": window[0],
                "end": window[1],
                "uid": uid,
                "created": created,
            },
            _WINDOWS,
            st.uuids().map(str),
            st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(  # noqa: DTZ001
                lambda time: f"{time:%Y-%m-%dT%H:%M:%SZ}"
            ),
        )

    def meaning(self, answer: Answer) -> JsonValue:
        """Return both times."""
        return answer.output

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare both times."""
        spec = GARDEN["spec"]
        window = {"begin": question["begin"], "end": question["end"]}
        virtual = {**spec["virtualCluster"], "maintenance": {"timeWindow": window}}
        metadata = {"name": "a", "uid": question["uid"], "creationTimestamp": question["created"]}
        obj = {**GARDEN, "metadata": metadata, "spec": {**spec, "virtualCluster": virtual}}
        garden = garden_from(default_garden(obj))
        ours: JsonObject = {
            "defragmentation": defragmentation(garden).cron(),
            "snapshot": full_snapshot(garden).cron(),
        }
        theirs = answer.output or {"error": str(answer.value)}
        length = (time_of_day(window["end"]) - time_of_day(window["begin"])) % DAY
        if answer.outcome == "panic" or length in (timedelta(), DAY - timedelta(seconds=1)):
            return differences({"odd window": theirs}, {"odd window": ours})
        return differences(theirs, ours)


class Evictions:
    """When autoscalers may evict pods to make them smaller."""

    name = "evictions"
    ask = "evictions"
    title = "Evictions in the maintenance window"
    of: OracleModule = GARDENER
    code = (
        "pergola.operator.eviction_requirements",
        "pergola.operator.maintenance_window",
        "pergola.api.time_of_day",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return autoscalers and times."""
        texts = st.one_of(
            _WINDOWS.map(",".join),
            _WINDOWS.map(",".join),
            st.tuples(_TIMES | _MALFORMED, _TIMES | _MALFORMED).map(",".join),
            st.sampled_from(["", ",", "220000+0000,230000+0000,", "220000+0000"]),
        )
        annotations = some(
            {
                RESTRICTION: st.sampled_from([NEVER, *[IN_WINDOW] * 6, "", "other"]),
                WINDOW: texts,
            }
        )
        times = st.builds(
            lambda hour, minute, second: f"2026-02-28T{hour:02}:{minute:02}:{second:02}Z",
            _HOURS,
            _MINUTES,
            st.sampled_from([0, 0, 1, 59]),
        )
        return st.builds(
            lambda marks, now: {"autoscaler": _autoscaler(marks), "now": now}, annotations, times
        )

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the effect on the requirements."""
        return {"downscaling": answer.output.get("downscaling", "")}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the effect on the requirements."""
        theirs = str(answer.output.get("downscaling", answer.value))
        ours = _downscaling(question)
        if theirs != ours:
            yield Difference(f"{_moment(question)}: {theirs}, {ours}", theirs, ours)


def _autoscaler(annotations: JsonObject) -> JsonObject:
    before = {"resources": ["cpu"], "changeRequirement": "TargetLowerThanRequests"}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "a", "namespace": "b", "annotations": annotations},
        "spec": {"updatePolicy": {"evictionRequirements": [before]}},
    }


def _moment(question: JsonObject) -> str:
    """Return where in a window the question is asked."""
    text = question["autoscaler"]["metadata"]["annotations"].get(WINDOW, "")
    begin, _, end = text.partition(",")
    try:
        first, last = time_of_day(begin), time_of_day(end)
    except ValueError:
        return "malformed"
    now = datetime.fromisoformat(question["now"]) + timedelta(minutes=5)
    is_last = time_of_day(f"{now:%H%M%S}+0000") == last
    return "edge" if first == last or is_last else "inside or outside"


def _downscaling(question: JsonObject) -> str:
    now = datetime.fromisoformat(question["now"])
    try:
        decision = decide(seen(question["autoscaler"]), now)
    except ValueError:
        return "untouched"
    return "forbidden" if decision.requirements else "allowed"
