"""Why a pod is not ready: its container, its last log line, its last Event, and its claims."""

from collections.abc import Iterable
from typing import Final

from pergola.api.kinds import PVC
from pergola.api.objects import JsonObject, Key, map_at, maps_at, namespace_of
from pergola.health.pod_trouble import Cause, Trouble, pod_trouble
from pergola.health.since import since
from pergola.why.answer import Statement
from pergola.why.health import advice
from pergola.why.health.details import Details, problem_of
from pergola.why.reading import Reader

_NEEDS_VOLUMES: Final = (Cause.UNSCHEDULABLE, Cause.CREATING)
_SHOWN: Final = 3


async def explain_pods(reader: Reader, pods: Iterable[JsonObject]) -> tuple[Statement, ...]:
    """Return a statement for each kind of problem of pods, with the number of similar pods."""
    groups: dict[tuple[Cause, str], list[tuple[JsonObject, Trouble]]] = {}
    for pod in sorted(pods, key=Key.of):
        trouble = pod_trouble(pod)
        if trouble is not None:
            groups.setdefault((trouble.cause, trouble.container), []).append((pod, trouble))
    by_gravity = sorted(groups.items(), key=lambda group: _gravity(group[0][0]))
    return tuple(
        [await explain_pod(reader, *alike[0], others=len(alike) - 1) for _, alike in by_gravity]
    )[:_SHOWN]


async def explain_pod(
    reader: Reader, pod: JsonObject, trouble: Trouble, others: int = 0
) -> Statement:
    """Return the statement about a failing pod.

    Args:
        others: The number of other pods of the same workload with the same problem.
    """
    details = await pod_details(reader, pod, trouble)
    more = f" ({others} more pods have the same problem)" if others else ""
    return problem_of(
        f"Pod {Key.of(pod)}",
        f"{trouble.problem}{more}",
        details,
        since=since(pod, trouble.problem),
        event=await reader.event(pod),
    )


async def pod_details(reader: Reader, pod: JsonObject, trouble: Trouble) -> Details:
    """Return the log of the failing container, the advice, and the unbound claims."""
    claims = await _claims(reader, pod) if trouble.cause in _NEEDS_VOLUMES else ()
    log = await reader.log(pod, trouble)
    return Details(claims, advice.about_pod(pod, trouble), log)


def claim_problem(claim: JsonObject | None) -> str | None:
    """Return why a PersistentVolumeClaim is not bound, or None."""
    if claim is None:
        return "it does not exist"
    phase = map_at(claim, "status").get("phase")
    if phase == "Bound":
        return None
    name = map_at(claim, "spec").get("storageClassName")
    storage = f"StorageClass {name}" if name else "no StorageClass"
    return f"phase is {phase or 'unknown'}, with {storage}"


async def claim_details(reader: Reader, claim: JsonObject) -> Details:
    """Return what to do about a PersistentVolumeClaim."""
    return Details(advice=advice.about_claim(claim, await reader.event(claim)))


async def _claims(reader: Reader, pod: JsonObject) -> tuple[Statement, ...]:
    found = []
    for volume in maps_at(pod, "spec", "volumes"):
        name = map_at(volume, "persistentVolumeClaim").get("claimName")
        if not name:
            continue
        key = Key(namespace_of(pod), str(name))
        claim = await reader.find(PVC, key)
        problem = claim_problem(claim)
        if problem is None or (claim is None and not await reader.is_missing(PVC, key)):
            continue
        event = await reader.event(claim) if claim else ""
        found.append(
            problem_of(
                f"{PVC.kind} {key}",
                problem,
                Details(advice=advice.about_claim(claim, event) if claim else ""),
                since=since(claim, problem) if claim else None,
                event=event,
            )
        )
    return tuple(found)


def _gravity(cause: Cause) -> int:
    """Return a number that is lower the more likely a cause explains the others."""
    mild = (Cause.NOT_READY, Cause.CREATING, Cause.GATE, Cause.TERMINATING)
    return mild.index(cause) + 1 if cause in mild else 0
