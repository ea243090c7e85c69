"""The interface of a health check, and the checks that most extensions need (spec 40 §2.6)."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from pergola.api.conditions import FALSE, PROGRESSING, UNKNOWN
from pergola.api.kinds import POD
from pergola.api.managed_resource_status import progressing_problem
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.cluster import Cluster
from pergola.extension_api.errors import Code
from pergola.health import check as health_of
from pergola.health import check_ready, is_relevant, pod_trouble
from pergola.health import progressing as rollout_of
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.kube.selectors import SelectorError, format_selector

SYSTEM_COMPONENTS_HEALTHY: Final = "SystemComponentsHealthy"
EVERY_NODE_READY: Final = "EveryNodeReady"
CONTROL_PLANE_HEALTHY: Final = "ControlPlaneHealthy"
OBSERVABILITY_COMPONENTS_HEALTHY: Final = "ObservabilityComponentsHealthy"
_INVALID: Final = re.compile("error during apply of object .* is invalid:", re.IGNORECASE)
"""What resource managers report about an object that a user has configured wrongly."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check.

    Attributes:
        status: `Progressing`, only with a threshold, for problems that may resolve themselves;
            `Unknown` only with a reason.
        detail: a sentence for the user: the problem and its place.
        codes: the classes of the error.
        threshold: how many seconds progressing is acceptable. gardenlet leaves out its own checks
            while a condition is `Progressing`.
        reason: the check's own reason, for a condition with this check alone; the condition then
            repeats the check. Empty for the common reasons.
    """

    status: Literal["True", "False", "Progressing", "Unknown"]
    detail: str = ""
    codes: tuple[Code, ...] = ()
    threshold: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.status == UNKNOWN and not self.reason:
            raise ValueError("a check with status Unknown needs its own reason")
        if self.status == PROGRESSING and self.threshold is None:
            raise ValueError("a check with status Progressing needs a threshold")


HEALTHY: Final = Verdict("True")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """The inputs of a check.

    Attributes:
        client: for the seed.
        read: returns an object of the seed, or None if it does not exist.
        cluster: returns the Cluster of the extension resource; None for other classes.
        namespace: of the extension resource.
        now: the time when the checks began.
    """

    client: Client
    read: Callable[[GroupVersionKind, Key], Awaitable[JsonObject | None]]
    cluster: Callable[[], Awaitable[Cluster | None]]
    namespace: str
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """A check that counts for a condition.

    Attributes:
        name: unique among the checks of a condition; for messages about failed checks.
        condition: the type of the condition.
        run: performs the check; an exception counts as 'could not be executed'.
        applies: whether there is anything to check; if not, the result is healthy.
        managed_resource: the ManagedResource that it reads in the namespace, if any: its changes
            trigger the check at once.
    """

    name: str
    condition: str
    run: Callable[[CheckContext, JsonObject], Awaitable[Verdict]]
    applies: Callable[[JsonObject], bool] = lambda _: True
    managed_resource: str = ""


def managed_resource(
    name: str,
    condition: str = SYSTEM_COMPONENTS_HEALTHY,
    *,
    threshold: float | None = None,
    applies: Callable[[JsonObject], bool] = lambda _: True,
) -> HealthCheck:
    """Return a check that the objects of a ManagedResource are applied and healthy.

    Args:
        name: the name of the ManagedResource, in the namespace of the extension resource.
        threshold: how many seconds a rollout may take; None does not check rollouts, as in the
            original.
    """

    async def run(context: CheckContext, _: JsonObject) -> Verdict:
        key = Key(context.namespace, name)
        resource = await context.read(MANAGED_RESOURCE, key)
        if resource is None:
            return Verdict(FALSE, f"ManagedResource {key} does not exist")
        if problem := check_ready(resource):
            codes = (Code.CONFIGURATION_PROBLEM,) if _INVALID.search(problem) else ()
            return Verdict(FALSE, f"ManagedResource {key} is unhealthy: {problem}", codes)
        if threshold is not None and (problem := progressing_problem(resource)):
            return Verdict(
                PROGRESSING, f"ManagedResource {key} is progressing: {problem}", (), threshold
            )
        return HEALTHY

    return HealthCheck(
        name=f"ManagedResource {name}",
        condition=condition,
        run=run,
        applies=applies,
        managed_resource=name,
    )


def deployment(
    name: str,
    condition: str = CONTROL_PLANE_HEALTHY,
    *,
    threshold: float | None = None,
    applies: Callable[[JsonObject], bool] = lambda _: True,
) -> HealthCheck:
    """Return a check of a Deployment in the extension's namespace; see `managed_resource`."""
    return _workload("Deployment", name, condition, threshold, applies)


def stateful_set(
    name: str,
    condition: str = CONTROL_PLANE_HEALTHY,
    *,
    threshold: float | None = None,
    applies: Callable[[JsonObject], bool] = lambda _: True,
) -> HealthCheck:
    """Return a check of a StatefulSet in the extension's namespace; see `managed_resource`."""
    return _workload("StatefulSet", name, condition, threshold, applies)


def daemon_set(
    name: str,
    condition: str = CONTROL_PLANE_HEALTHY,
    *,
    threshold: float | None = None,
    applies: Callable[[JsonObject], bool] = lambda _: True,
) -> HealthCheck:
    """Return a check of a DaemonSet in the extension's namespace; see `managed_resource`."""
    return _workload("DaemonSet", name, condition, threshold, applies)


def _workload(
    kind: str,
    name: str,
    condition: str,
    threshold: float | None,
    applies: Callable[[JsonObject], bool],
) -> HealthCheck:
    gvk = GroupVersionKind("apps", "v1", kind)

    async def run(context: CheckContext, _: JsonObject) -> Verdict:
        key = Key(context.namespace, name)
        live = await context.read(gvk, key)
        if live is None:
            return Verdict(FALSE, f"{kind} {key} does not exist")
        if problem := health_of(live):
            problem += await _of_pods(context, live)
            return Verdict(FALSE, f"{kind} {key} is unhealthy: {problem}")
        if threshold is not None and (problem := rollout_of(live)):
            problem += await _of_pods(context, live)
            return Verdict(PROGRESSING, f"{kind} {key} is progressing: {problem}", (), threshold)
        return HEALTHY

    return HealthCheck(name=f"{kind} {name}", condition=condition, run=run, applies=applies)


async def _of_pods(context: CheckContext, workload: JsonObject) -> str:
    """Return what the first pod lacks that is not ready, as the end of a sentence."""
    try:
        labels = format_selector(map_at(workload, "spec", "selector"))
        pods = await context.client.list(POD, context.namespace, labels=labels)
    except (SelectorError, Forbidden):  # permission to read pods is optional
        return ""
    for pod in pods:
        if is_relevant(pod) and (trouble := pod_trouble(pod)) is not None:
            return f"; pod {name_of(pod)}: {trouble.problem}"
    return ""
