"""From an object that is not as it should be, down to the cause."""

from typing import Final

from pergola.api.kinds import DAEMON_SET, DEPLOYMENT, POD, PVC, SERVICE, STATEFUL_SET
from pergola.api.objects import GroupKind, Identity, JsonObject, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.health import pod_trouble
from pergola.health.since import since
from pergola.operator.run.readiness import direct_problem
from pergola.why.answer import Asked, Part, Statement
from pergola.why.health import advice
from pergola.why.health.details import Details, problem_of
from pergola.why.health.managed import managed_details, managed_resource_problem
from pergola.why.health.operated import (
    etcd_details,
    monitoring_details,
)
from pergola.why.health.pods import claim_details, claim_problem, pod_details
from pergola.why.health.replicas import (
    REPLICA_SET,
    deployment_details,
    workload_details,
)
from pergola.why.reading import Reader

_WORKLOADS: Final = {
    REPLICA_SET.group_kind,
    STATEFUL_SET.group_kind,
    DAEMON_SET.group_kind,
}
_MONITORING: Final = {
    GroupKind("monitoring.coreos.com", "Prometheus"),
    GroupKind("monitoring.coreos.com", "Alertmanager"),
}


async def unhealthy(identity: Identity, reader: Reader) -> Statement | None:
    """Return why an object is unhealthy; None if it is healthy, or may not be read.

    Raises:
        KubeError: The API server does not answer.
    """
    return await _Walk(reader).explain(identity)


class _Walk:
    """A single walk; an object reached again is not explained twice."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen: set[Identity] = set()

    async def explain(self, identity: Identity) -> Statement | None:
        if identity in self._seen:
            return None
        self._seen.add(identity)
        obj = await self._reader.find(*identity)
        problem = _problem(identity, obj)
        if problem is None:
            return None
        subject = f"{identity.gvk.kind} {identity.key}"
        if obj is None:
            is_missing = await self._reader.is_missing(*identity)
            return problem_of(subject, problem) if is_missing else None
        return problem_of(
            subject,
            problem,
            await self._details(identity.gvk.group_kind, obj),
            since=since(obj, problem),
            event=await self._reader.event(obj),
        )

    async def _details(self, kind: GroupKind, obj: JsonObject) -> Details:
        reader = self._reader
        if kind == MANAGED_RESOURCE.group_kind:
            return await managed_details(reader, obj, self.explain)
        if kind == ETCD.group_kind:
            return await etcd_details(reader, obj, self.explain)
        if kind in _MONITORING:
            return await monitoring_details(reader, obj, self.explain)
        if kind == DEPLOYMENT.group_kind:
            return await deployment_details(reader, obj)
        if kind in _WORKLOADS:
            return await workload_details(reader, obj)
        if kind == PVC.group_kind:
            return await claim_details(reader, obj)
        if kind == SERVICE.group_kind:
            return Details(advice=advice.NO_ADDRESS)
        trouble = pod_trouble(obj) if kind == POD.group_kind else None
        return await pod_details(reader, obj, trouble) if trouble else Details()


def _problem(identity: Identity, obj: JsonObject | None) -> str | None:
    """Return why an object is not as it should be, by the rule of its kind."""
    kind = identity.gvk.group_kind
    if kind == MANAGED_RESOURCE.group_kind:
        return managed_resource_problem(obj)
    if kind == PVC.group_kind:
        return claim_problem(obj)
    if kind == POD.group_kind and obj is not None:
        trouble = pod_trouble(obj)
        return trouble.problem if trouble else None
    return direct_problem(identity.gvk)(obj)


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return why an object is unhealthy, if it is; nothing about one that does not exist yet."""
    if not uid_of(asked.obj):
        return Part()
    found = await unhealthy(Identity(asked.gvk, asked.key), reader)
    if found is None:
        return Part(sentence="is healthy")
    return Part(sentence="is not healthy", statements=(found,))
