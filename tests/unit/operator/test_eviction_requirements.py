"""Requirements on evictions by autoscalers (spec 21 §5.5)."""

from datetime import UTC, datetime

import pytest

from pergola.operator.eviction_requirements import ONLY_UPSCALING, Decision, Seen, decide, seen

WINDOW = "220000+0100,230000+0100"  # 21:00 to 22:00 in UTC


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 2, hour, minute, tzinfo=UTC)


def in_window(window: str = WINDOW) -> Seen:
    return Seen("in-maintenance-window-only", window, [])


def test_pods_never_evicted_for_downscaling_are_not_requeued() -> None:
    assert decide(Seen("never", "", []), at(12)) == Decision(ONLY_UPSCALING)


@pytest.mark.parametrize(
    ("now", "may_downscale", "again"),
    [
        (at(20, 54), False, 60),
        (at(20, 55), True, 3600),
        (at(21, 30), True, 25 * 60),
        (at(21, 55), False, 23 * 3600),
        (at(0), False, 20 * 3600 + 55 * 60),
    ],
)
def test_downscaling_is_allowed_in_the_window_and_decided_five_minutes_ahead(
    now: datetime, again: float, *, may_downscale: bool
) -> None:
    assert decide(in_window(), now) == Decision([] if may_downscale else ONLY_UPSCALING, again)


def test_a_window_may_contain_midnight() -> None:
    night = in_window("230000+0000,010000+0000")
    assert decide(night, at(0, 30)).requirements == []
    assert decide(night, at(1, 30)).requirements == ONLY_UPSCALING


@pytest.mark.parametrize(
    ("autoscaler", "text"),
    [
        (Seen("", "", []), "write never or in-maintenance-window-only"),
        (Seen("sometimes", WINDOW, []), 'is "sometimes"'),
        (in_window(""), "write it as BEGIN,END"),
        (in_window("220000+0100"), "write it as BEGIN,END"),
        (in_window("25,26"), "write it as BEGIN,END"),
        (in_window("22000+0100,230000+0100"), "write it as BEGIN,END"),
        (in_window("220000Z,230000Z"), "write it as BEGIN,END"),
        (in_window("220000+01:00,230000+01:00"), "write it as BEGIN,END"),
    ],
)
def test_a_missing_or_malformed_annotation_is_reported(autoscaler: Seen, text: str) -> None:
    with pytest.raises(ValueError, match="annotation") as error:
        decide(autoscaler, at(12))
    assert text in str(error.value)


def test_only_relevant_fields_are_cached() -> None:
    found = seen({"metadata": {}, "spec": {"updatePolicy": {"evictionRequirements": [{"a": 1}]}}})
    assert found == Seen("", "", [{"a": 1}])
    assert seen({"metadata": {}}) == Seen("", "", [])
