"""Combination of several check results into one condition: the table of spec 40 §2.6; pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from pergola.api.conditions import FALSE, PROGRESSING, TRUE, UNKNOWN
from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.health_checks.checks import Verdict
from pergola.health.times import read_time

SUCCESSFUL: Final = "HealthCheckSuccessful"
UNSUCCESSFUL: Final = "HealthCheckUnsuccessful"
STILL_PROGRESSING: Final = "HealthCheckProgressing"
CHECK_ERROR: Final = "ConditionCheckError"


class Result(NamedTuple):
    """The result of one check: its verdict, or the exception that it raised."""

    name: str
    outcome: Verdict | Exception


class ConditionUpdate(NamedTuple):
    """The content of a condition."""

    status: str
    reason: str
    message: str
    codes: tuple[Code, ...] = ()


ALL_HEALTHY: Final = ConditionUpdate(TRUE, SUCCESSFUL, "All health checks successful")
HIBERNATED: Final = ConditionUpdate(TRUE, SUCCESSFUL, "Shoot is hibernated")


def unable(error: Exception) -> ConditionUpdate:
    """Return the condition for the case that no check could be started."""
    return ConditionUpdate(
        UNKNOWN, CHECK_ERROR, f"unable to execute any health check: {_text(error)}"
    )


def aggregate(results: Iterable[Result], old: JsonObject | None, now: datetime) -> ConditionUpdate:
    """Return the condition that summarizes its checks.

    Args:
        old: the current condition; None if there is none.
    """
    results = list(results)
    if len(results) == 1 and (update := _in_own_words(results[0].outcome)):
        return update
    raised, unhealthy, rolling = _sorted(results)
    details = _details(raised, unhealthy, rolling)
    if raised:
        checks = "health check" if len(raised) == 1 else "health checks"
        return ConditionUpdate(
            UNKNOWN, CHECK_ERROR, f"failed to execute {len(raised)} {checks}: {details}"
        )
    if unhealthy:
        return ConditionUpdate(FALSE, UNSUCCESSFUL, details, _codes([*unhealthy, *rolling]))
    if rolling and _may_go_on(rolling, old, now):
        return ConditionUpdate(PROGRESSING, STILL_PROGRESSING, details, _codes(rolling))
    if rolling:
        return ConditionUpdate(FALSE, UNSUCCESSFUL, details, _codes(rolling))
    return ALL_HEALTHY


_Found = list[tuple[str, Verdict]]


def _in_own_words(outcome: Verdict | Exception) -> ConditionUpdate | None:
    """Return the condition in a check's own words, or None if it uses the common ones."""
    if not isinstance(outcome, Verdict) or not outcome.reason:
        return None
    return ConditionUpdate(outcome.status, outcome.reason, outcome.detail, outcome.codes)


def _sorted(results: Iterable[Result]) -> tuple[list[tuple[str, Exception]], _Found, _Found]:
    """Return the checks without a result, the unhealthy ones, and the progressing ones."""
    raised: list[tuple[str, Exception]] = []
    found: dict[str, _Found] = {TRUE: [], FALSE: [], PROGRESSING: []}
    for name, outcome in results:
        if not isinstance(outcome, Verdict):
            raised.append((name, outcome))
        elif outcome.status == UNKNOWN:
            raised.append((name, ExtensionError(outcome.detail, *outcome.codes)))
        else:
            found[outcome.status].append((name, outcome))
    return raised, found[FALSE], found[PROGRESSING]


def _may_go_on(rolling: _Found, old: JsonObject | None, now: datetime) -> bool:
    """Return whether the progressing checks still have time.

    The condition records since when it has its status, so what was once False stays False.
    """
    if old is None or old.get("status") == TRUE:
        return True
    since = read_time(old.get("lastTransitionTime"))
    if old.get("status") == FALSE or since is None:
        return False
    thresholds = [v.threshold for _, v in rolling if v.threshold is not None]
    return (now - since).total_seconds() <= min(thresholds)


def _details(raised: Sequence[tuple[str, Exception]], unhealthy: _Found, rolling: _Found) -> str:
    groups = [
        ("Unable to execute check(s): ", [_text(error) or name for name, error in raised]),
        ("Failed check(s): ", [verdict.detail or name for name, verdict in unhealthy]),
        ("Progressing check(s): ", [verdict.detail or name for name, verdict in rolling]),
    ]
    present = [(prefix, texts) for prefix, texts in groups if texts]
    several = len(present) > 1
    return " ".join(f"{prefix if several else ''}{_listed(texts)}" for prefix, texts in present)


def _listed(texts: Sequence[str]) -> str:
    sentences = [f"{text.rstrip().rstrip('.')}." for text in texts]
    if len(sentences) == 1:
        return sentences[0]
    return " ".join(f"{number}) {text}" for number, text in enumerate(sentences, start=1))


def _codes(found: _Found) -> tuple[Code, ...]:
    return tuple(dict.fromkeys(code for _, verdict in found for code in verdict.codes))


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
