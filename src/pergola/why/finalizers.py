"""The owners of finalizers, and when each removes its own; pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pergola.api.cluster_api import provider_finalizer
from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.marks import FINALIZER, OPERATOR_FINALIZER, REFERENCE_PROTECTION
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    deletion_timestamp_of,
    finalizers_of,
    map_at,
    maps_at,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.kinds import EXTENSION_KINDS, GROUP
from pergola.health.times import read_time
from pergola.why.answer import Statement, Topic


class Owner(NamedTuple):
    """The owner of a finalizer, and the moment when it removes it."""

    name: str
    removal: str


_UNKNOWN: Final = Owner("a controller that Pergola does not know", "")
_KNOWN: Final = {
    OPERATOR_FINALIZER: Owner(
        "the operator", "once everything that it created for the object is gone"
    ),
    REFERENCE_PROTECTION: Owner(
        "the operator", "once no Garden or Extension names the object any more"
    ),
    "foregroundDeletion": Owner(
        "the garbage collector of Kubernetes", "once the objects that it owns are gone"
    ),
    "orphan": Owner(
        "the garbage collector of Kubernetes", "once the objects that it owns have no owner"
    ),
    "kubernetes": Owner(
        "the namespace controller of Kubernetes", "once the namespace has no content"
    ),
    "kubernetes.io/pvc-protection": Owner(
        "the volume controller of Kubernetes", "once no pod uses the claim"
    ),
    "kubernetes.io/pv-protection": Owner(
        "the volume controller of Kubernetes", "once no claim is bound to the volume"
    ),
    "service.kubernetes.io/load-balancer-cleanup": Owner(
        "the service controller of the cloud", "once the load balancer is deleted"
    ),
    "batch.kubernetes.io/job-tracking": Owner(
        "the job controller of Kubernetes", "once the pod is counted"
    ),
    "customresourcecleanup.apiextensions.k8s.io": Owner(
        "the API server", "once all objects of the kind are deleted"
    ),
    "machine.sapcloud.io/machine-controller-manager": Owner(
        "machine-controller-manager", "once the instance is gone, and no machine needs the object"
    ),
    "machine.sapcloud.io/machine-controller": Owner(
        "machine-controller-manager's driver for the cloud", "once no machine needs the object"
    ),
    "cluster.cluster.x-k8s.io": Owner(
        "the core controllers of Cluster API", "once the machines and the InfraCluster are gone"
    ),
}


def finalizer_statements(obj: JsonObject) -> Iterator[Statement]:
    """Yield who must remove each finalizer, as blockers if deletion was requested."""
    deleted = read_time(deletion_timestamp_of(obj))
    names = [*finalizers_of(obj), *_of_namespace(obj)]
    for name in names:
        owner = owner_of(name, GroupVersionKind.of(obj))
        removal = f", which removes it {owner.removal}" if owner.removal else ""
        yield Statement(
            topic=Topic.FINALIZER if deleted is None else Topic.BLOCKED,
            subject=name if deleted is None else f"finalizer {name}",
            text=f"of {owner.name}{removal}",
            since=deleted,
            advice=_advice(name, owner) if deleted else "",
        )
    if deleted is not None:
        yield from _namespace_content(obj)


def owner_of(name: str, gvk: GroupVersionKind) -> Owner:
    """Return the owner of a finalizer on an object of a kind."""
    if name in _KNOWN:
        return _KNOWN[name]
    if name.startswith(FINALIZER):
        return _resource_manager(name, gvk)
    group, _, kind = name.partition("/")
    extension = {each.lower(): each for each in EXTENSION_KINDS}.get(kind)
    if group == GROUP and extension:
        if gvk == SECRET:
            removal = f"once no {extension} names the Secret"
        else:
            removal = "once everything that it created for the object is gone"
        return Owner(f"the extension that serves the {extension}", removal)
    if name == provider_finalizer(gvk.group_kind):
        return Owner(
            f"the provider of {gvk.kind}s", "once it has deleted the infrastructure that it created"
        )
    return _UNKNOWN


def _resource_manager(name: str, gvk: GroupVersionKind) -> Owner:
    suffix = name.removeprefix(FINALIZER).removeprefix("-")
    which = f"the resource manager of class {suffix}" if suffix else "the resource manager"
    if gvk.group_kind == MANAGED_RESOURCE.group_kind:
        return Owner(which, "once the objects of the ManagedResource are gone")
    return Owner(which, "once no ManagedResource names the object")


def _advice(name: str, owner: Owner) -> str:
    if owner is _UNKNOWN:
        return f"find the controller that sets finalizer {name}, and check that it runs"
    return ""


def _of_namespace(obj: JsonObject) -> list[str]:
    if GroupVersionKind.of(obj) != NAMESPACE:
        return []
    names = map_at(obj, "spec").get("finalizers")
    return [str(name) for name in names] if isinstance(names, list) else []


def _namespace_content(obj: JsonObject) -> Iterator[Statement]:
    """Yield the namespace controller's report about remaining content."""
    for condition in maps_at(obj, "status", "conditions"):
        if GroupVersionKind.of(obj) == NAMESPACE and condition.get("status") == "True":
            yield Statement(
                topic=Topic.BLOCKED,
                subject=f"condition {condition.get('type')}",
                text=str(condition.get("message") or ""),
                since=read_time(condition.get("lastTransitionTime")),
            )
