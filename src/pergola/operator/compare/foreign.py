"""Objects in a dump that no component renders: those of users, controllers and other programs."""

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
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.definitions import GROUPS
from pergola.garden.components.istio import INGRESS_NAMESPACE
from pergola.garden.components.observability.global_password import NAME as GLOBAL_PASSWORD
from pergola.garden.components.resource_manager.virtual import BOOTSTRAP
from pergola.garden.components.service_mesh.permissions import NAMESPACE as ISTIO
from pergola.garden.landscape import NAMESPACE
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
_BY_EXTENSIONS: Final = frozenset({"BackupBucket", "BackupEntry", "DNSRecord", "Extension"})
# Objects that tasks of a flow create, and no component renders: the prefix of the name, by kind.
_BY_TASKS: Final = {
    ("ConfigMap", "gardener-info"),
    ("Namespace", NAMESPACE),
    ("Secret", GLOBAL_PASSWORD),
    ("Secret", BOOTSTRAP),
}
_NAMESPACES: Final = frozenset({ISTIO, INGRESS_NAMESPACE})
_DEFINED: Final = frozenset(
    {GROUP, MANAGED_RESOURCE.group, *(name for group in GROUPS for name in group.kinds)}
)
_OF_KUBERNETES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_IN_EVERY_NAMESPACE: Final = {
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "istio-ca-root-cert"),
    ("ServiceAccount", "default"),
}


def why_foreign(placed: Placed) -> str | None:
    """Return why an object is not compared, or None if components render it."""
    obj = placed.obj
    kind, name = GroupVersionKind.of(obj).kind, name_of(obj)
    if kind in _BY_EXTENSIONS or (kind in ("ManagedResource", "Secret") and _is_of_extension(name)):
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
    if any(kind == its and name.startswith(begin) for its, begin in _BY_TASKS):
        return "objects that tasks create"
    return "objects of other programs" if _is_of_others(kind, name) else None


def _is_of_others(kind: str, name: str) -> bool:
    """Return whether this is a namespace or a definition that no Garden has."""
    if kind == "Namespace":
        return name not in _NAMESPACES
    return kind == "CustomResourceDefinition" and name.partition(".")[2] not in _DEFINED


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
