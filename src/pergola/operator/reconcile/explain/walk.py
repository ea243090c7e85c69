"""From an object that is not as it should be, down to the cause."""

from typing import Final

from pergola.api.kinds import DAEMON_SET, DEPLOYMENT, POD, SERVICE, STATEFUL_SET
from pergola.api.objects import GroupKind, JsonObject
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.component import Identity
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.health import pod_trouble
from pergola.kube.client import Client
from pergola.operator.reconcile.explain import advice
from pergola.operator.reconcile.explain.finding import Details, Finding
from pergola.operator.reconcile.explain.managed import managed_details, managed_resource_problem
from pergola.operator.reconcile.explain.operated import (
    etcd_details,
    monitoring_details,
)
from pergola.operator.reconcile.explain.pods import CLAIM, claim_details, claim_problem, pod_details
from pergola.operator.reconcile.explain.reading import Reader
from pergola.operator.reconcile.explain.workloads import (
    REPLICA_SET,
    deployment_details,
    workload_details,
)
from pergola.operator.reconcile.picture.since import since
from pergola.operator.run.readiness import direct_problem

_WORKLOADS: Final = {
    REPLICA_SET.group_kind,
    STATEFUL_SET.group_kind,
    DAEMON_SET.group_kind,
}
_MONITORING: Final = {
    GroupKind("monitoring.coreos.com", "Prometheus"),
    GroupKind("monitoring.coreos.com", "Alertmanager"),
}


async def explain(client: Client, identity: Identity) -> Finding | None:
    """Return why an object is not as it should be, or None if it is.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    return await _Walk(Reader(client)).explain(identity)


class _Walk:
    """A single walk; an object reached again is not explained twice."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen: set[Identity] = set()

    async def explain(self, identity: Identity) -> Finding | None:
        if identity in self._seen:
            return None
        self._seen.add(identity)
        obj = await self._reader.find(identity)
        problem = _problem(identity, obj)
        if problem is None:
            return None
        subject = f"{identity.gvk.kind} {identity.key}"
        if obj is None:
            return Finding(subject=subject, problem=problem)
        details = await self._details(identity.gvk.group_kind, obj)
        return Finding(
            subject=subject,
            problem=problem,
            since=since(obj, problem),
            log=details.log,
            event=await self._reader.event(obj),
            causes=details.causes,
            advice=details.advice,
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
        if kind == CLAIM.group_kind:
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
    if kind == CLAIM.group_kind:
        return claim_problem(obj)
    if kind == POD.group_kind and obj is not None:
        trouble = pod_trouble(obj)
        return trouble.problem if trouble else None
    return direct_problem(identity.gvk)(obj)
