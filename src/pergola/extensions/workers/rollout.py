"""Whether the desired machines run, and what is missing (spec 31 §5 steps 8 and 9)."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pergola.api.objects import (
    JsonObject,
    finalizers_of,
    labels_of,
    map_at,
    maps_at,
)
from pergola.api.texts import abridged
from pergola.extensions.workers.deployments import NAME_LABEL, current_replicas
from pergola.extensions.workers.desired import DesiredMachines
from pergola.extensions.workers.live import Live, class_of
from pergola.health.times import read_time

_FINALIZER: Final = "machine.sapcloud.io/machine-controller-manager"
_STUCK_AFTER: Final = timedelta(minutes=2)
UPDATE: Final = "InPlaceUpdate"
"""The condition of a Machine whose update in place is due."""
CANDIDATE: Final = "CandidateForUpdate"
"""Its reason until the user starts the update."""
_MUST_BE_TRUE: Final = "Available"
_MAY_BE_TRUE: Final = "Progressing"
_MUST_BE_FALSE: Final = ("ReplicaFailure", "Frozen")


def failed_machines(live: Live, deployments: Iterable[str], *, operation: str = "") -> str:
    """Return a sentence about machines that failed, by reason; empty if none has.

    Args:
        deployments: the names of the MachineDeployments to look at.
        operation: the only operation that counts, such as `Delete`; all if empty.
    """
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name in deployments:
        for machine in maps_at(live.deployments.get(name, {}), "status", "failedMachines"):
            last = map_at(machine, "lastOperation")
            if operation in ("", last.get("type")):
                reason = str(last.get("description") or "no reason given")
                by_reason[reason].append(f'"{machine.get("name")}"')
    reasons = [f"{abridged(names)}: {reason}" for reason, names in by_reason.items()]
    return f"machine(s) failed: {'; '.join(reasons)}" if reasons else ""


def missing(desired: Sequence[DesiredMachines], live: Live, *, is_hibernated: bool) -> str:
    """Return a sentence about what is not finished yet; empty if everything is."""
    counts = [_Counts.of(each, live) for each in desired]
    awake = sum(count.replicas for count in counts)
    if is_hibernated:
        awake = max(awake, _awake({each.name for each in desired}, live))
        return f"{awake} machine(s) are not hibernated yet" if awake else ""
    behind = [count for count in counts if not count.has_set]
    if behind:
        names = ", ".join(count.name for count in behind)
        return f"machine-controller-manager has not created the machine sets of {names} yet"
    manual = sum(count.unselected for count in counts)
    old = sum(count.being_updated for count in counts)
    unavailable = sum(count.unavailable for count in counts)
    preserved = sum(count.preserved for count in counts)
    updated = sum(count.updated for count in counts) + manual
    unhealthy = [f"{count.name} {count.problem}" for count in counts if count.problem]
    if old:
        return f"{old} old machine(s) are being updated"
    if updated == awake and not unhealthy and (not unavailable or unavailable <= preserved):
        return ""
    asked = sum(count.desired for count in counts)
    available = sum(count.available for count in counts)
    if not unavailable and available == asked and updated < awake:
        return f"{awake - updated} old machine(s) are being drained and terminated"
    text = (
        f"{available} of {asked} machine(s) are available, {updated} updated, {unavailable} pending"
    )
    if preserved:
        text += f", {preserved} failed and preserved"
    return "; ".join([text, *unhealthy])


def _awake(deployments: Collection[str], live: Live) -> int:
    """Return how many machines exist, or are about to.

    The status of a MachineDeployment lags behind, and nothing deletes a machine that appears after
    machine-controller-manager has stopped.
    """
    machines = sum(1 for each in live.machines if labels_of(each).get(NAME_LABEL) in deployments)
    planned = sum(
        int(map_at(each, "spec").get("replicas") or 0)
        for name in deployments
        for each in live.sets_of(name)
    )
    return max(machines, planned)


def stuck(live: Live, now: datetime) -> str:
    """Return the MachineDeployment that machine-controller-manager does not serve, or nothing."""
    for name, deployment in live.deployments.items():
        created = read_time(map_at(deployment, "metadata").get("creationTimestamp"))
        is_new = created is None or now - created < _STUCK_AFTER
        if is_new or _FINALIZER not in finalizers_of(deployment):
            continue
        if not _has_set(name, class_of(deployment), live):
            return name
    return ""


def is_updated(pool: str, desired: Sequence[DesiredMachines], live: Live) -> bool:
    """Return whether no machine of a pool waits for its update."""
    return not any(
        machine
        for each in desired
        if each.pool == pool
        for machine in old_machines(each.name, each.class_name, live)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """The numbers of one MachineDeployment.

    Attributes:
        replicas: machines that exist.
        unselected: machines whose update a user has not started.
        being_updated: old machines whose update a user has started.
        problem: why it is not healthy; empty if it is.
    """

    name: str
    has_set: bool
    desired: int
    replicas: int
    updated: int
    available: int
    unavailable: int
    preserved: int
    unselected: int = 0
    being_updated: int = 0
    problem: str = ""

    @classmethod
    def of(cls, desired: DesiredMachines, live: Live) -> "_Counts":
        deployment = live.deployments.get(desired.name, {})
        replicas, unselected, being_updated = number(deployment, "replicas"), 0, 0
        if desired.is_manual:
            # A machine has its new owner as soon as it is updated, but the numbers of its former
            # and its new MachineSet follow one after the other.
            replicas = sum(1 for _ in live.machines_of(live.sets_of(desired.name)))
            old = [*old_machines(desired.name, desired.class_name, live)]
            being_updated = sum(map(is_being_updated, old))
            unselected = len(old) - being_updated
        return cls(
            name=desired.name,
            has_set=_has_set(desired.name, desired.class_name, live),
            desired=current_replicas(deployment),
            replicas=replicas,
            updated=number(deployment, "updatedReplicas"),
            available=number(deployment, "availableReplicas"),
            unavailable=number(deployment, "unavailableReplicas"),
            preserved=number(deployment, "preservedFailedReplicas"),
            unselected=unselected,
            being_updated=being_updated,
            problem=problem(deployment),
        )


def problem(deployment: JsonObject) -> str:
    """Return why a MachineDeployment is not healthy, or nothing."""
    if not deployment:
        return "does not exist"
    generation = map_at(deployment, "metadata").get("generation") or 0
    if number(deployment, "observedGeneration") < int(generation):
        return "has not been observed since its last change"
    conditions = {
        str(each.get("type")): each for each in maps_at(deployment, "status", "conditions")
    }
    for kind, state in (
        (_MUST_BE_TRUE, "True"),
        (_MAY_BE_TRUE, "True"),
        *((kind, "False") for kind in _MUST_BE_FALSE),
    ):
        condition = conditions.get(kind)
        if condition is None and kind == _MUST_BE_TRUE:
            return f"has no condition {kind}"
        if condition is not None and condition.get("status") != state:
            text = condition.get("message") or condition.get("reason") or "no reason given"
            return f"has {kind}={condition.get('status')} ({text})"
    return ""


def _has_set(deployment: str, class_name: str, live: Live) -> bool:
    return any(class_of(each) == class_name for each in live.sets_of(deployment))


def old_machines(deployment: str, class_name: str, live: Live) -> Iterator[JsonObject]:
    """Yield the machines of a MachineDeployment that are not replaced or updated yet.

    Args:
        class_name: the MachineClass of new machines.
    """
    sets = live.sets_of(deployment)
    return live.machines_of(each for each in sets if class_of(each) != class_name)


def is_being_updated(machine: JsonObject) -> bool:
    """Return whether the update in place of a Machine has begun."""
    return any(
        each.get("type") == UPDATE and each.get("reason") != CANDIDATE
        for each in maps_at(machine, "status", "conditions")
    )


def number(obj: JsonObject, field: str) -> int:
    """Return a number in the status of an object; 0 without one."""
    value = map_at(obj, "status").get(field)
    return value if isinstance(value, int) else 0
