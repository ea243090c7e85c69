"""Volumes in EFS: the CSI driver, which runs in the Shoot alone (spec 31 §7.2)."""

from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.errors import ExtensionError
from pergola.manifests import (
    KUBE_SYSTEM,
    ON_EVERY_NODE,
    RUNTIME_DEFAULT,
    account,
    cluster_role,
    empty_dir,
    env,
    from_pod,
    host_path,
    manifest,
    mount,
    port,
    rule,
    selector,
)
from pergola.manifests.labels import CRITICAL_COMPONENT
from pergola.providers.aws.control_plane.render.conventions import CONTROLLER, READ_ONLY, TO_SHOOT
from pergola.providers.aws.control_plane.render.csi_nodes import (
    KUBELET,
    TOLERATIONS,
    health_probe,
    kubelet_volumes,
)
from pergola.providers.aws.control_plane.render.values import Values

DRIVER: Final = "efs.csi.aws.com"
NODE: Final = "csi-driver-efs-node"
CONTROLLER_NAME: Final = "efs-csi-controller"
STORAGE_CLASS: Final = "efs-sc"
_NODE_ACCOUNT: Final = "efs-csi-node-sa"
_CONTROLLER_ACCOUNT: Final = "efs-csi-controller-sa"
_SHARED: Final = {"app.kubernetes.io/name": NODE}
_NODE_LABELS: Final = {"app": "csi", "role": "driver-efs-node", **CRITICAL_COMPONENT}
_CONTROLLER_LABELS: Final = {
    "app": "csi-efs",
    "app.kubernetes.io/name": CONTROLLER_NAME,
    "role": "driver-efs-controller",
}
_TO_PRIVATE: Final = {"networking.gardener.cloud/to-private-networks": "allowed"}
_SOCKETS: Final = "/var/lib/csi/sockets/pluginproxy"
_READ: Final = ("get", "list", "watch")
_PROVISIONER_RULES: Final = (
    rule("", ["persistentvolumes"], [*_READ, "create", "patch", "delete"]),
    rule("", ["persistentvolumeclaims"], [*_READ, "update"]),
    rule("storage.k8s.io", ["storageclasses"], _READ),
    rule("", ["events"], ["list", "watch", "create", "patch"]),
    rule("storage.k8s.io", ["csinodes"], _READ),
    rule("", ["nodes"], _READ),
    rule("coordination.k8s.io", ["leases"], ["get", "watch", "list", "delete", "update", "create"]),
)


def shoot_objects(values: Values) -> list[JsonObject]:
    """Return the driver and its StorageClass, if the Shoot has a file system.

    Raises:
        ExtensionError: the file system does not exist yet.
    """
    chosen = values.part("provider", "infrastructureConfig", "elasticFileSystem")
    if chosen.get("enabled") is not True:
        return []
    return [
        *(_account(name) for name in (_CONTROLLER_ACCOUNT, _NODE_ACCOUNT)),
        *cluster_role(
            "efs-csi-external-provisioner-role",
            _PROVISIONER_RULES,
            account(_CONTROLLER_ACCOUNT, KUBE_SYSTEM),
            labels=_SHARED,
            binding="efs-csi-provisioner-binding",
        ),
        *cluster_role(
            "efs-csi-node-role",
            [rule("", ["nodes"], [*_READ, "patch"])],
            account(_NODE_ACCOUNT, KUBE_SYSTEM),
            labels=_SHARED,
            binding="efs-csi-node-binding",
        ),
        _daemon_set(values),
        _deployment(values),
        manifest("storage.k8s.io/v1", "CSIDriver", DRIVER, spec={"attachRequired": False}),
        _storage_class(values),
    ]


def _account(name: str) -> JsonObject:
    return manifest("v1", "ServiceAccount", name, namespace=KUBE_SYSTEM, labels=_SHARED)


def _storage_class(values: Values) -> JsonObject:
    file_system = map_at(values.plan.infrastructure, "elasticFileSystem").get("ID")
    if not file_system:
        raise ExtensionError(
            "the infrastructure has no elastic file system yet, although the Shoot enables it"
        )
    return manifest(
        "storage.k8s.io/v1",
        "StorageClass",
        STORAGE_CLASS,
        annotations={"resources.gardener.cloud/delete-on-invalid-update": "true"},
        provisioner=DRIVER,
        parameters={
            "provisioningMode": "efs-ap",
            "fileSystemId": file_system,
            "directoryPerms": "700",
        },
    )


def _daemon_set(values: Values) -> JsonObject:
    pod: JsonObject = {
        "serviceAccountName": _NODE_ACCOUNT,
        "priorityClassName": ON_EVERY_NODE,
        "hostNetwork": True,
        "securityContext": {"seccompProfile": RUNTIME_DEFAULT},
        "tolerations": list(TOLERATIONS),
        "containers": [_node_driver(values), _registrar(values), _node_probe(values)],
        "volumes": [
            *kubelet_volumes(DRIVER),
            host_path("efs-state-dir", "/var/run/efs", "DirectoryOrCreate"),
        ],
    }
    return manifest(
        "apps/v1",
        "DaemonSet",
        NODE,
        namespace=KUBE_SYSTEM,
        labels=_NODE_LABELS,
        spec={
            "selector": selector(_NODE_LABELS),
            "template": {"metadata": {"labels": _NODE_LABELS}, "spec": pod},
        },
    )


def _node_driver(values: Values) -> JsonObject:
    limit: JsonObject = {"containerName": "driver-efs-node", "resource": "limits.memory"}
    return {
        "name": "driver-efs-node",
        "image": values.images("csi-driver-efs"),
        "args": [
            "--endpoint=$(CSI_ENDPOINT)",
            "--logtostderr",
            "--v=5",
            "--vol-metrics-opt-in=false",
            "--vol-metrics-refresh-period=240",
            "--vol-metrics-fs-rate-limit=5",
        ],
        "env": env(
            CSI_ENDPOINT="unix:/csi/csi.sock",
            CSI_NODE_NAME=from_pod("spec.nodeName"),
            CSI_NODE_MEMORY_LIMIT={"resourceFieldRef": limit},
            PORT_RANGE_UPPER_BOUND="21049",
        ),
        "ports": [port("healthz", 9809)],
        "livenessProbe": health_probe(periodSeconds=2),
        "resources": _memory("42Mi", "2Gi"),
        "securityContext": {
            "privileged": True,
            "allowPrivilegeEscalation": True,
            "capabilities": {"add": ["SYS_ADMIN"]},
        },
        "volumeMounts": [
            mount("kubelet-dir", KUBELET, mountPropagation="Bidirectional"),
            mount("plugin-dir", "/csi"),
            mount("efs-state-dir", "/var/run/efs"),
        ],
    }


def _registrar(values: Values) -> JsonObject:
    return {
        "name": "csi-driver-registrar",
        "image": values.images("csi-node-driver-registrar"),
        "args": [
            "--csi-address=$(ADDRESS)",
            "--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)",
            "--v=5",
        ],
        "env": env(
            ADDRESS="/csi/csi.sock",
            DRIVER_REG_SOCK_PATH=f"{KUBELET}/plugins/{DRIVER}/csi.sock",
            KUBE_NODE_NAME=from_pod("spec.nodeName"),
        ),
        "resources": _memory("32Mi", "1Gi"),
        "securityContext": READ_ONLY,
        "volumeMounts": [mount("plugin-dir", "/csi"), mount("registration-dir", "/registration")],
    }


def _node_probe(values: Values) -> JsonObject:
    return {
        "name": "liveness-probe",
        "image": values.images("csi-liveness-probe"),
        "args": ["--csi-address=/csi/csi.sock", "--health-port=9809", "--v=5"],
        "resources": _memory("32Mi", "200Mi"),
        "securityContext": READ_ONLY,
        "volumeMounts": [mount("plugin-dir", "/csi")],
    }


def _deployment(values: Values) -> JsonObject:
    pod: JsonObject = {
        "automountServiceAccountToken": True,
        "serviceAccountName": _CONTROLLER_ACCOUNT,
        "securityContext": {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "runAsGroup": 0,
            "fsGroup": 0,
        },
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": f"{DRIVER}/agent-not-ready", "operator": "Exists"},
        ],
        "containers": [_driver(values), _provisioner(values), _controller_probe(values)],
        "volumes": [empty_dir("socket-dir")],
    }
    return manifest(
        "apps/v1",
        "Deployment",
        CONTROLLER_NAME,
        namespace=KUBE_SYSTEM,
        labels={**_CONTROLLER_LABELS, **CONTROLLER},
        spec={
            "replicas": 1,
            "selector": selector(_CONTROLLER_LABELS),
            "template": {
                "metadata": {
                    "labels": {
                        **_CONTROLLER_LABELS,
                        "gardener.cloud/role": "driver-efs-controller",
                        **TO_SHOOT,
                        **_TO_PRIVATE,
                    }
                },
                "spec": pod,
            },
        },
    )


def _driver(values: Values) -> JsonObject:
    return {
        "name": "aws-csi-driver-efs",
        "image": values.images("csi-driver-efs"),
        "args": [
            "--endpoint=$(CSI_ENDPOINT)",
            "--logtostderr",
            "--v=5",
            "--delete-access-point-root-dir=false",
        ],
        "env": env(
            AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE="ipv6" if values.has_only_ipv6 else "ipv4",
            CSI_ENDPOINT=f"unix://{_SOCKETS}/csi.sock",
            CSI_NODE_NAME=from_pod("spec.nodeName"),
        ),
        "ports": [port("healthz", 9909)],
        "livenessProbe": health_probe(periodSeconds=10),
        "resources": _memory("50Mi", "360Mi"),
        "volumeMounts": [mount("socket-dir", f"{_SOCKETS}/")],
    }


def _provisioner(values: Values) -> JsonObject:
    return {
        "name": "aws-csi-provisioner",
        "image": values.images("csi-provisioner"),
        "args": [
            "--csi-address=$(ADDRESS)",
            "--v=5",
            "--feature-gates=Topology=true",
            "--extra-create-metadata",
            "--leader-election",
            "--leader-election-renew-deadline=10s",
            "--leader-election-lease-duration=15s",
        ],
        "env": env(ADDRESS=f"{_SOCKETS}/csi.sock"),
        "resources": _memory("38Mi", "400Mi"),
        "volumeMounts": [mount("socket-dir", f"{_SOCKETS}/")],
    }


def _controller_probe(values: Values) -> JsonObject:
    return {
        "name": "liveness-probe",
        "image": values.images("csi-liveness-probe"),
        "args": ["--csi-address=/csi/csi.sock", "--health-port=9909"],
        "resources": _memory("32Mi", "200Mi"),
        "volumeMounts": [mount("socket-dir", "/csi")],
    }


def _memory(request: str, limit: str) -> JsonObject:
    return {"requests": {"memory": request}, "limits": {"memory": limit}}
