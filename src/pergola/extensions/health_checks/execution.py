"""Running the checks of an extension resource, concurrently, each with its own time limit."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pergola.api.conditions import get_condition
from pergola.api.objects import JsonObject, maps_at
from pergola.extension_api.errors import ExtensionError, codes_of
from pergola.extensions.health_checks.aggregate import ConditionUpdate, Result, aggregate
from pergola.extensions.health_checks.checks import HEALTHY, CheckContext, HealthCheck
from pergola.kube.errors import KubeError
from pergola.runtime.logging import get_logger
from pergola.runtime.retrying import collect_failures
from pergola.runtime.task_group import TaskGroup

log = get_logger("health-checks")

ChecksByCondition: TypeAlias = Mapping[str, Sequence[HealthCheck]]


def by_condition(checks: Sequence[HealthCheck]) -> ChecksByCondition:
    """Return the checks by the type of their condition."""
    found: dict[str, list[HealthCheck]] = {}
    for check in checks:
        found.setdefault(check.condition, []).append(check)
    return found


async def run_checks(
    checks: ChecksByCondition, obj: JsonObject, context: CheckContext, seconds: float
) -> dict[str, ConditionUpdate]:
    """Return the desired content of each condition of a resource.

    Args:
        seconds: the time limit of each check.
    """
    async with TaskGroup() as group:
        running = {
            condition: [
                group.create_task(_result(check, context, obj, seconds)) for check in several
            ]
            for condition, several in checks.items()
        }
    present = maps_at(obj, "status", "conditions")
    return {
        condition: aggregate(
            [task.result() for task in tasks], get_condition(present, condition), context.now
        )
        for condition, tasks in running.items()
    }


async def _result(
    check: HealthCheck, context: CheckContext, obj: JsonObject, seconds: float
) -> Result:
    """Return the result of a check, including any exception, so that the others continue."""
    limit = asyncio.timeout(seconds)
    with collect_failures() as failures:
        try:
            if not check.applies(obj):
                return Result(check.name, HEALTHY)
            async with limit:
                return Result(check.name, await check.run(context, obj))
        except Exception as error:
            if limit.expired():
                return Result(check.name, _late(check.name, seconds, failures.last))
            if not isinstance(error, KubeError | ExtensionError):
                log.error("check failed", check=check.name, exc_info=error)
            return Result(check.name, error)


def _late(check: str, seconds: float, cause: Exception | None) -> ExtensionError:
    text = f"{check}: no answer within {seconds:g} seconds"
    if cause is None:
        return ExtensionError(text)
    return ExtensionError(f"{text}; it was retrying: {cause}", *codes_of(cause))
