"""Why a ManagedResource is not healthy: its Secrets, its resource manager, and its objects."""

from collections.abc import AsyncIterator
from typing import Final

from pergola.api.kinds import DEPLOYMENT, SECRET
from pergola.api.managed_resource_status import problems_of
from pergola.api.objects import (
    GroupVersionKind,
    Identity,
    JsonObject,
    Key,
    map_at,
    maps_at,
    namespace_of,
)
from pergola.garden.landscape import NAMESPACE
from pergola.health import has_rule
from pergola.operator.run.readiness import is_awaited
from pergola.why.answer import Statement
from pergola.why.health import advice
from pergola.why.health.details import Details, problem_of
from pergola.why.health.operated import Walk
from pergola.why.reading import Reader

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
    text = "" if causes or is_runtime(resource) else _IN_VIRTUAL
    return Details(tuple(causes), text)


_IN_VIRTUAL: Final = (
    "look at the object in the virtual cluster: pergola garden kubeconfig > virtual.yaml, then "
    "kubectl --kubeconfig virtual.yaml"
)


def is_runtime(resource: JsonObject) -> bool:
    """Return whether the objects of a ManagedResource are in the runtime cluster."""
    return bool(map_at(resource, "spec").get("class"))


async def _lost_secrets(reader: Reader, resource: JsonObject) -> AsyncIterator[Statement]:
    for reference in maps_at(resource, "spec", "secretRefs"):
        key = Key(namespace_of(resource), str(reference.get("name")))
        if await reader.is_missing(SECRET, key):
            details = Details(advice=advice.WRITE_AGAIN)
            yield problem_of(f"Secret {key}", "it does not exist", details)


async def _manager(reader: Reader, resource: JsonObject, walk: Walk) -> Statement | None:
    """Return why the resource manager of a ManagedResource does not run."""
    key = RUNTIME_MANAGER if is_runtime(resource) else VIRTUAL_MANAGER
    identity = Identity(DEPLOYMENT, key)
    found = await walk(identity)
    if found is not None:
        return found
    deployment = await reader.find(*identity)
    if map_at(deployment or {}, "spec").get("replicas") != 0:
        return None
    text = advice.NO_REPLICAS.format(namespace=key.namespace, name=key.name)
    return problem_of(f"Deployment {key}", "it has no replicas", Details(advice=text))


async def _objects(resource: JsonObject, walk: Walk) -> AsyncIterator[Statement]:
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
