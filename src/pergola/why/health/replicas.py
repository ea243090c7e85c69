"""Why a workload is not ready: pods that cannot be created, and failing pods."""

from typing import Final

from pergola.api.kinds import POD
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
    metadata_of,
)
from pergola.health.conditions import condition
from pergola.health.since import since
from pergola.why.health import advice
from pergola.why.health.details import Details, problem_of
from pergola.why.health.pods import explain_pods
from pergola.why.reading import Reader

REPLICA_SET: Final = GroupVersionKind("apps", "v1", "ReplicaSet")

_REVISION: Final = "deployment.kubernetes.io/revision"
_FAILED_CREATE: Final = "FailedCreate"


async def deployment_details(reader: Reader, deployment: JsonObject) -> Details:
    """Return why the newest ReplicaSet of a Deployment has no ready pods."""
    if map_at(deployment, "spec").get("replicas") == 0:
        key = Key.of(deployment)
        return Details(advice=advice.NO_REPLICAS.format(namespace=key.namespace, name=key.name))
    sets = await reader.owned(REPLICA_SET, deployment)
    newest = max(sets, key=_revision, default=None)
    if newest is None:
        return Details()
    return await workload_details(reader, newest, is_named=True)


async def workload_details(
    reader: Reader, workload: JsonObject, *, is_named: bool = False
) -> Details:
    """Return why the pods of a ReplicaSet, StatefulSet or DaemonSet do not exist, or are not ready.

    Args:
        is_named: Whether pods that cannot be created are a problem of the workload itself.
    """
    refused = await _refused(reader, workload)
    causes = await explain_pods(reader, await reader.owned(POD, workload))
    if not refused:
        return Details(causes)
    if not is_named:
        return Details(causes, advice.about_creation(refused))
    problem = f"it cannot create pods: {refused}"
    subject = f"{workload.get('kind')} {Key.of(workload)}"
    first = problem_of(
        subject,
        problem,
        Details(advice=advice.about_creation(refused)),
        since=since(workload, "condition ReplicaFailure "),
    )
    return Details((first, *causes))


async def _refused(reader: Reader, workload: JsonObject) -> str:
    """Return why pods cannot be created; empty if they can."""
    failure = condition(workload, "ReplicaFailure")
    if failure is not None and failure.get("status") == "True":
        return str(failure.get("message") or failure.get("reason"))
    event = await reader.event(workload)
    is_short = _current(workload) < _desired(workload)
    reason, _, message = event.partition(": ")
    return message if is_short and reason == _FAILED_CREATE else ""


def _current(workload: JsonObject) -> int:
    status = map_at(workload, "status")
    return int(status.get("replicas") or status.get("currentNumberScheduled") or 0)


def _desired(workload: JsonObject) -> int:
    desired = map_at(workload, "status").get("desiredNumberScheduled")
    if desired is None:
        desired = map_at(workload, "spec").get("replicas", 1)
    return int(desired or 0)


def _revision(replica_set: JsonObject) -> tuple[int, str]:
    revision = annotations_of(replica_set).get(_REVISION, "")
    created = str(metadata_of(replica_set).get("creationTimestamp"))
    return int(revision) if revision.isdigit() else 0, created
