"""PersistentVolumeClaimAutoscalers on a seed in AWS (spec 31 §8)."""

from datetime import timedelta
from typing import Final

from pergola.admission.draft import Draft
from pergola.api.durations import DurationError, format_duration, parse_duration
from pergola.api.objects import JsonObject, JsonValue

_LEAST: Final = timedelta(hours=6)
_BECAUSE: Final = "AWS changes a volume at most once in six hours"


def mutate_autoscaler(draft: Draft, _: JsonObject | None) -> None:
    """Let each volume rest for six hours after it was enlarged."""
    policies = draft.get("spec", "volumePolicies")
    for index in range(len(policies) if isinstance(policies, list) else 0):
        path = ("spec", "volumePolicies", index, "scaleUp")
        scale_up = draft.get(*path)
        if isinstance(scale_up, dict) and _is_short(scale_up.get("cooldownDuration")):
            draft.set((*path, "cooldownDuration"), format_duration(_LEAST), _BECAUSE)


def _is_short(duration: JsonValue) -> bool:
    if not isinstance(duration, str):
        return True
    try:
        return parse_duration(duration) < _LEAST
    except DurationError:
        return True
