"""Why a ManagedResource is not healthy: its Secrets, its resource manager, and its objects."""

from collections.abc import AsyncIterator
from typing import Final

from pergola.api.kinds import DEPLOYMENT, SECRET
from pergola.api.managed_resource_status import problems_of
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at, namespace_of
from pergola.garden.components.component import Identity
from pergola.garden.landscape import NAMESPACE
from pergola.health import has_rule
from pergola.operator.reconcile.explain import advice
from pergola.operator.reconcile.explain.finding import Details, Finding
from pergola.operator.reconcile.explain.operated import Walk
from pergola.operator.reconcile.explain.reading import Reader
from pergola.operator.run.readiness import is_awaited

RUNTIME_MANAGER: Final = Key(NAMESPACE, "gardener-resource-manager")
VIRTUAL_MANAGER: Final = Key(NAMESPACE, "virtual-garden-gardener-resource-manager")

_SHOWN: Final = 3


def managed_resource_problem(resource: JsonObject | None) -> str | None:
    """Return why a ManagedResource is not applied, healthy or rolled out, or None."""
    if resource is None:
        return "it does not exist"
    return "; ".join(problems_of(resource)) or None


async def managed_details(reader: Reader, resource: JsonObject, walk: Walk) -> Details:
    """Return what prevents a ManagedResource from being applied and healthy."""
    causes = [each async for each in _lost_secrets(reader, resource)]
    manager = await _manager(reader, resource, walk)
    causes += [manager] if manager else []
    if is_runtime(resource):
        causes += [each async for each in _objects(resource, walk)]
    text = "" if causes or is_runtime(resource) else _LOOK
    return Details(tuple(causes), text)


_LOOK: Final = (
    "look at the object in the virtual cluster: pergola garden kubeconfig > virtual.yaml, then "
    "kubectl --kubeconfig virtual.yaml"
)


def is_runtime(resource: JsonObject) -> bool:
    """Return whether the objects of a ManagedResource are in the runtime cluster."""
    return bool(map_at(resource, "spec").get("class"))


async def _lost_secrets(reader: Reader, resource: JsonObject) -> AsyncIterator[Finding]:
    for reference in maps_at(resource, "spec", "secretRefs"):
        key = Key(namespace_of(resource), str(reference.get("name")))
        if await reader.is_missing(Identity(SECRET, key)):
            yield Finding(
                subject=f"Secret {key}", problem="it does not exist", advice=advice.WRITE_AGAIN
            )


async def _manager(reader: Reader, resource: JsonObject, walk: Walk) -> Finding | None:
    """Return why the resource manager of a ManagedResource does not run."""
    key = RUNTIME_MANAGER if is_runtime(resource) else VIRTUAL_MANAGER
    identity = Identity(DEPLOYMENT, key)
    found = await walk(identity)
    if found is not None:
        return found
    deployment = await reader.find(identity)
    if map_at(deployment or {}, "spec").get("replicas") != 0:
        return None
    text = advice.NO_REPLICAS.format(namespace=key.namespace, name=key.name)
    return Finding(subject=f"Deployment {key}", problem="it has no replicas", advice=text)


async def _objects(resource: JsonObject, walk: Walk) -> AsyncIterator[Finding]:
    """Yield the problems of the objects; kinds without a rule are healthy if they exist."""
    left = _SHOWN
    for reference in maps_at(resource, "status", "resources"):
        gvk = GroupVersionKind.parse(str(reference.get("apiVersion")), str(reference.get("kind")))
        if left and (has_rule(gvk) or is_awaited(gvk)):
            key = Key(str(reference.get("namespace") or ""), str(reference.get("name")))
            found = await walk(Identity(gvk, key))
            if found is not None:
                left -= 1
                yield found
