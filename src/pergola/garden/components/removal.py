"""The objects that components leave behind, by kind and name.

They are declared, not rendered: a Garden can be deleted even if objects that it names are missing,
or if its components can no longer be rendered. A test compares them with the rendered objects.
"""

from collections.abc import Iterable
from typing import Final

from pergola.api.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    DESTINATION_RULE,
    GATEWAY,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    VERTICAL_POD_AUTOSCALER,
    VIRTUAL_SERVICE,
)
from pergola.api.objects import GroupVersionKind, Identity, Key
from pergola.garden.components.component import Removable
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.etcd_objects import ETCD

_ADMISSION: Final = ("admissionregistration.k8s.io", "v1")
_MONITORING: Final = ("monitoring.coreos.com", "v1")
_RBAC: Final = ("rbac.authorization.k8s.io", "v1")
_NAMESPACED: Final = {
    kind.kind: kind
    for kind in (
        CONFIG_MAP,
        DEPLOYMENT,
        DESTINATION_RULE,
        ETCD,
        GATEWAY,
        GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        GroupVersionKind("policy", "v1", "PodDisruptionBudget"),
        GroupVersionKind(*_MONITORING, "PrometheusRule"),
        GroupVersionKind(*_RBAC, "Role"),
        GroupVersionKind(*_RBAC, "RoleBinding"),
        SECRET,
        SERVICE,
        SERVICE_ACCOUNT,
        GroupVersionKind(*_MONITORING, "ServiceMonitor"),
        VERTICAL_POD_AUTOSCALER,
        VIRTUAL_SERVICE,
    )
}
_CLUSTER_WIDE: Final = {
    kind.kind: kind
    for kind in (
        CLUSTER_ROLE,
        CLUSTER_ROLE_BINDING,
        CRD,
        GroupVersionKind(*_ADMISSION, "MutatingWebhookConfiguration"),
        GroupVersionKind(*_ADMISSION, "ValidatingWebhookConfiguration"),
    )
}


def removable(*objects: str, managed: Iterable[str] = (), namespace: str = NAMESPACE) -> Removable:
    """Return the objects that a component leaves behind, in the order of deletion.

    Args:
        objects: Kind and name of each object that the operator applies itself, such as `Service
            virtual-garden-kube-apiserver`.
        managed: The names of its ManagedResources.
        namespace: The namespace of all these objects, if their kind is namespaced.
    """
    keys = tuple(Key(namespace, name) for name in managed)
    return Removable(keys, tuple(_identity(each, namespace) for each in objects))


def _identity(text: str, namespace: str) -> Identity:
    kind, _, name = text.partition(" ")
    if kind in _CLUSTER_WIDE:
        return Identity(_CLUSTER_WIDE[kind], Key("", name))
    return Identity(_NAMESPACED[kind], Key(namespace, name))
