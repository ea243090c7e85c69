"""Objects of a dump that neither operator applies: those of users, Kubernetes and controllers."""

from typing import Final

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    labels_of,
    maps_at,
    name_of,
    namespace_of,
)
from pergola.api.operator_v1alpha1 import GROUP
from pergola.operator.compare.placed import Placed

_BY_CONTROLLERS: Final = frozenset(
    {
        "ControllerRevision",
        "EndpointSlice",
        "Endpoints",
        "Event",
        "Lease",
        "NetworkPolicy",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "ReplicaSet",
        "StatefulSet",
        "VerticalPodAutoscalerCheckpoint",
    }
)
_BY_USERS: Final = frozenset({"Garden", "Gardenlet"})
_BY_TASKS: Final = frozenset({"BackupBucket", "BackupEntry", "DNSRecord", "Extension"})
_OF_KUBERNETES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_IN_EVERY_NAMESPACE: Final = {
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "istio-ca-root-cert"),
    ("ServiceAccount", "default"),
}


def why_foreign(placed: Placed) -> str | None:
    """Return why an object is not compared, or None if an operator applies it."""
    obj = placed.obj
    kind, name = GroupVersionKind.of(obj).kind, name_of(obj)
    if kind in _BY_TASKS or (kind in ("ManagedResource", "Secret") and _is_of_extension(name)):
        return "objects for or of extensions"
    if placed.managed:
        return None
    if kind in _BY_CONTROLLERS or _is_owned(obj):
        return "objects of controllers"
    if kind in _BY_USERS or labels_of(obj).get("gardener.cloud/role") == "garden-cert":
        return "objects of users"
    if _is_of_kubernetes(obj, kind, name):
        return "objects of Kubernetes"
    is_of_chart = name == "gardener-operator" or name.endswith(f".{GROUP}")
    if is_of_chart or str(obj.get("type")).startswith("helm.sh/"):
        return "objects of the operator's chart"
    return None


def _is_of_extension(name: str) -> bool:
    return name.startswith(("extension-", "managedresource-extension-"))


def _is_owned(obj: JsonObject) -> bool:
    owners = maps_at(obj, "metadata", "ownerReferences")
    return any(owner.get("controller") is True for owner in owners)


def _is_of_kubernetes(obj: JsonObject, kind: str, name: str) -> bool:
    return (
        namespace_of(obj) in _OF_KUBERNETES
        or (kind == "Namespace" and name in _OF_KUBERNETES)
        or (kind == "PriorityClass" and name.startswith("system-"))
        or (kind, name) in _IN_EVERY_NAMESPACE
        or obj.get("type") == "kubernetes.io/service-account-token"
    )
