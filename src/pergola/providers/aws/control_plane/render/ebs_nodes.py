"""Volumes in EBS: the CSI driver on nodes, and the controllers' permissions (spec 31 §7.2)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    ON_EVERY_NODE,
    RUNTIME_DEFAULT,
    account,
    cluster_role,
    env,
    host_path,
    manifest,
    mount,
    port,
    requests,
    role,
    rule,
    selector,
    service_account,
)
from pergola.manifests.labels import CRITICAL_COMPONENT
from pergola.providers.aws.control_plane.render.conventions import ORIGIN, READ_ONLY
from pergola.providers.aws.control_plane.render.csi_nodes import (
    KUBELET,
    TOLERATIONS,
    health_probe,
    kubelet_volumes,
)
from pergola.providers.aws.control_plane.render.values import Values

NAME: Final = "csi-driver-node"
DRIVER: Final = "ebs.csi.aws.com"
_LABELS: Final = {"app": "csi", "role": "disk-driver"}
_FLAGS: Final = ("volume-attach-limit", "reserved-volume-attachments", "legacy-xfs")
"""Arguments of the driver that annotations of the Shoot set."""
_READY: Final = {"node.gardener.cloud/wait-for-csi-node-aws": DRIVER}
"""An annotation: nodes accept pods only after the driver has registered."""

_STORAGE: Final = "storage.k8s.io"
_SNAPSHOT: Final = "snapshot.storage.k8s.io"
_GROUPS: Final = "groupsnapshot.storage.k8s.io"
_READ: Final = ("get", "list", "watch")
_REPORT: Final = ("list", "watch", "create", "update", "patch")
_CHANGE: Final = ("get", "list", "watch", "update", "patch")
_ROLES: Final = {
    "csi-attacher": (
        rule("", ["persistentvolumes"], _CHANGE),
        rule("", ["nodes"], _CHANGE),
        rule(_STORAGE, ["csinodes"], _READ),
        rule(_STORAGE, ["volumeattachments"], _CHANGE),
        rule(_STORAGE, ["volumeattachments/status"], ["patch"]),
        rule("", ["events"], ["create", "patch", "update"]),
    ),
    "csi-driver": (
        rule("", ["nodes"], ["get", "list", "update"]),
        rule("", ["namespaces"], ["get", "list"]),
        rule("", ["persistentvolumes"], _CHANGE),
        rule(_STORAGE, ["volumeattachments"], _CHANGE),
    ),
    "csi-provisioner": (
        rule("", ["persistentvolumes"], [*_READ, "create", "patch", "delete"]),
        rule("", ["persistentvolumeclaims"], [*_READ, "update"]),
        rule(_STORAGE, ["storageclasses"], _READ),
        rule("", ["events"], _REPORT),
        rule(_SNAPSHOT, ["volumesnapshots"], [*_READ, "update"]),
        rule(_SNAPSHOT, ["volumesnapshotcontents"], ["get", "list"]),
        rule(_STORAGE, ["csinodes"], _READ),
        rule("", ["nodes"], _READ),
        rule(_STORAGE, ["volumeattachments"], _READ),
        rule(_STORAGE, ["volumeattributesclasses"], ["get"]),
    ),
    "csi-resizer": (
        rule("", ["persistentvolumes"], _CHANGE),
        rule("", ["persistentvolumeclaims"], _READ),
        rule("", ["persistentvolumeclaims/status"], ["update", "patch"]),
        rule("", ["events"], _REPORT),
        rule(_STORAGE, ["volumeattributesclasses"], _READ),
    ),
    "csi-snapshotter": (
        rule("", ["events"], _REPORT),
        rule(_SNAPSHOT, ["volumesnapshotclasses"], _READ),
        rule(_SNAPSHOT, ["volumesnapshots"], [*_CHANGE, "create"]),
        rule(_SNAPSHOT, ["volumesnapshotcontents"], [*_CHANGE, "create"]),
        rule(_SNAPSHOT, ["volumesnapshotcontents/status"], ["update", "patch"]),
        rule(_GROUPS, ["volumegroupsnapshotclasses"], _READ),
        rule(_GROUPS, ["volumegroupsnapshotcontents"], _CHANGE),
        rule(_GROUPS, ["volumegroupsnapshotcontents/status"], ["update", "patch"]),
    ),
    "csi-volume-modifier": (
        rule("", ["persistentvolumes"], [*_READ, "patch"]),
        rule("", ["persistentvolumeclaims"], _READ),
        rule("", ["events"], ["create", "patch", "update"]),
    ),
    "csi-snapshot-controller": (
        rule("", ["persistentvolumes"], _READ),
        rule("", ["persistentvolumeclaims"], [*_READ, "update"]),
        rule("", ["events"], _REPORT),
        rule(_SNAPSHOT, ["volumesnapshotclasses"], _READ),
        rule(
            _SNAPSHOT,
            ["volumesnapshotcontents"],
            ["create", *_READ, "update", "delete", "patch"],
        ),
        rule(_SNAPSHOT, ["volumesnapshotcontents/status"], ["patch"]),
        rule(_SNAPSHOT, ["volumesnapshots"], [*_READ, "update", "patch", "delete"]),
        rule(_SNAPSHOT, ["volumesnapshots/status"], ["update", "patch"]),
    ),
}
"""Permissions in all namespaces; each name is an account but for `csi-driver`, which runs on
nodes."""
_ELECTS: Final = ("get", "watch", "list", "delete", "update", "create")


def shoot_objects(values: Values) -> list[JsonObject]:
    """Return the driver on nodes, and the permissions of the controllers on the seed."""
    return [
        service_account(NAME, KUBE_SYSTEM),
        service_account("csi-volume-modifier", KUBE_SYSTEM),
        *(obj for name in _ROLES for obj in _permissions(name)),
        _daemon_set(values),
        manifest(
            "storage.k8s.io/v1",
            "CSIDriver",
            DRIVER,
            spec={"attachRequired": True, "podInfoOnMount": False},
        ),
    ]


def _permissions(name: str) -> list[JsonObject]:
    full = f"{ORIGIN}:{name}"
    if name == "csi-driver":
        return cluster_role(full, _ROLES[name], account(NAME, KUBE_SYSTEM))
    subject = account(name, KUBE_SYSTEM)
    leases = rule("coordination.k8s.io", ["leases"], _ELECTS)
    return [
        *cluster_role(full, _ROLES[name], subject),
        *role(full, KUBE_SYSTEM, [leases], subject),
    ]


def _daemon_set(values: Values) -> JsonObject:
    labels = {**_LABELS, **CRITICAL_COMPONENT}
    pod: JsonObject = {
        "serviceAccountName": NAME,
        "priorityClassName": ON_EVERY_NODE,
        "hostNetwork": True,
        "securityContext": {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "runAsGroup": 0,
            "fsGroup": 0,
            "seccompProfile": RUNTIME_DEFAULT,
        },
        "tolerations": list(TOLERATIONS),
        "containers": [_driver(values), _registrar(values), _liveness_probe(values)],
        "volumes": [*kubelet_volumes(DRIVER), host_path("device-dir", "/dev", "Directory")],
    }
    return manifest(
        "apps/v1",
        "DaemonSet",
        NAME,
        namespace=KUBE_SYSTEM,
        labels=labels,
        spec={
            "selector": selector(_LABELS),
            "template": {"metadata": {"labels": labels, "annotations": _READY}, "spec": pod},
        },
    )


def _driver(values: Values) -> JsonObject:
    chosen = [f"--{name}={value}" for name in _FLAGS if (value := values.annotation(name))]
    return {
        "name": "csi-driver",
        "image": values.images("csi-driver"),
        "args": [
            "node",
            "--endpoint=$(CSI_ENDPOINT)",
            *chosen,
            "--logtostderr",
            "--v=3",
            "--vmodule=node_*=4,mount*=4,driver=4,controller=4",
        ],
        "env": env(CSI_ENDPOINT="unix:/csi/csi.sock"),
        "ports": [port("healthz", 9808)],
        "livenessProbe": health_probe(periodSeconds=10),
        "resources": requests(memory="42Mi"),
        "securityContext": {"privileged": True, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            mount("kubelet-dir", KUBELET, mountPropagation="Bidirectional"),
            mount("plugin-dir", "/csi"),
            mount("device-dir", "/dev"),
        ],
    }


def _registrar(values: Values) -> JsonObject:
    return {
        "name": "csi-node-driver-registrar",
        "image": values.images("csi-node-driver-registrar"),
        "args": [
            "--csi-address=$(ADDRESS)",
            "--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)",
            "--v=5",
        ],
        "env": env(
            ADDRESS="/csi/csi.sock",
            DRIVER_REG_SOCK_PATH=f"{KUBELET}/plugins/{DRIVER}/csi.sock",
        ),
        "resources": requests(memory="32Mi"),
        "securityContext": READ_ONLY,
        "volumeMounts": [mount("plugin-dir", "/csi"), mount("registration-dir", "/registration")],
    }


def _liveness_probe(values: Values) -> JsonObject:
    return {
        "name": "csi-liveness-probe",
        "image": values.images("csi-liveness-probe"),
        "args": ["--csi-address=/csi/csi.sock"],
        "resources": requests(memory="32Mi"),
        "securityContext": READ_ONLY,
        "volumeMounts": [mount("plugin-dir", "/csi")],
    }
