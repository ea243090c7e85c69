"""Defaults of pods and pod templates.

Fields that Go omits when they are false, zero or empty default to that value here, because a
manifest may still set them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.kube.equality.shapes import (
    ASSIGNED,
    QUANTITIES,
    QUANTITY,
    SERVER,
    TEXTS,
    Beside,
    Default,
    Derived,
    Filled,
    Present,
    Shape,
)

_TOKEN_VOLUME: Final = "kube-api-access-"  # noqa: S105 - the prefix of a name
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

SELECTOR_FIELDS: Final[Mapping[str, Shape]] = {"matchLabels": TEXTS}
SELECTOR: Final = Present(SELECTOR_FIELDS)
"""An empty selector selects everything, a missing one nothing."""


def _pull_policy(beside: Beside) -> JsonValue:
    image = str(beside.get("image") or "")
    name, at, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if tag not in ("", "latest") or (at and not tag) else "Always"


def _with_requests(resources: JsonObject) -> JsonObject:
    """Default a missing request to the limit."""
    requests = {**map_at(resources, "limits"), **map_at(resources, "requests")}
    return {**resources, "requests": requests} if requests else resources


RESOURCES: Final = Filled(_with_requests, {"limits": QUANTITIES, "requests": QUANTITIES})

_DIVISOR: Final = Default("0", QUANTITY)
_FIELDS: Final[Mapping[str, Shape]] = {
    "fieldRef": {"apiVersion": "v1"},
    "resourceFieldRef": {"containerName": "", "divisor": _DIVISOR},
}
_NAMED: Final[Mapping[str, Shape]] = {"name": ""}
_HANDLER: Final[Mapping[str, Shape]] = {
    "httpGet": {"host": "", "path": "/", "scheme": "HTTP"},
    "tcpSocket": {"host": ""},
    "grpc": {"service": ""},
}
_PROBE: Final[Mapping[str, Shape]] = {
    **_HANDLER,
    "initialDelaySeconds": 0,
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_CONTAINER: Final[Mapping[str, Shape]] = {
    "workingDir": "",
    "stdin": False,
    "stdinOnce": False,
    "tty": False,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": Derived(_pull_policy),
    "ports": {"name": "", "protocol": "TCP", "hostIP": "", "hostPort": 0},
    "env": {
        "value": "",
        "valueFrom": {
            **_FIELDS,
            "configMapKeyRef": _NAMED,
            "secretKeyRef": _NAMED,
            "fileKeyRef": {"optional": False},
        },
    },
    "envFrom": {"prefix": "", "configMapRef": _NAMED, "secretRef": _NAMED},
    "resources": RESOURCES,
    "volumeMounts": {"readOnly": False, "subPath": "", "subPathExpr": ""},
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "lifecycle": {"postStart": _HANDLER, "preStop": _HANDLER},
    "securityContext": {"procMount": "Default", "capabilities": {}, "seLinuxOptions": {}},
}
_TERM: Final[Mapping[str, Shape]] = {"labelSelector": SELECTOR, "namespaceSelector": SELECTOR}
_POD_AFFINITY: Final[Mapping[str, Shape]] = {
    "requiredDuringSchedulingIgnoredDuringExecution": _TERM,
    "preferredDuringSchedulingIgnoredDuringExecution": {"podAffinityTerm": _TERM},
}
CLAIM_SPEC: Final[Mapping[str, Shape]] = {
    "volumeMode": "Filesystem",
    "volumeName": ASSIGNED,
    "storageClassName": SERVER,
    "volumeAttributesClassName": SERVER,
    # Each defaults to the other.
    "dataSource": SERVER,
    "dataSourceRef": SERVER,
    "resources": RESOURCES,
    "selector": SELECTOR,
}
CLAIM_TEMPLATE: Final[Mapping[str, Shape]] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"creationTimestamp": SERVER, "labels": TEXTS, "annotations": TEXTS},
    "spec": CLAIM_SPEC,
    "status": SERVER,
}
_DISK: Final[Mapping[str, Shape]] = {"fsType": "", "partition": 0, "readOnly": False}
SOURCES: Final[Mapping[str, Shape]] = {
    "hostPath": {"type": ""},
    "nfs": {"readOnly": False},
    "awsElasticBlockStore": _DISK,
    "gcePersistentDisk": _DISK,
    "cephfs": {"readOnly": False, "user": "admin"},
    "fc": _DISK,
    "iscsi": {**_DISK, "iscsiInterface": "default"},
    "rbd": {**_DISK, "pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "azureFile": {"readOnly": False},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs", "readOnly": False},
}
"""The volume sources that pods and PersistentVolumes share."""

_CONFIG: Final[Mapping[str, Shape]] = {"name": "", "defaultMode": 420}
_VOLUME: Final[Mapping[str, Shape]] = {
    **SOURCES,
    "secret": {"secretName": "", "defaultMode": 420},
    "configMap": _CONFIG,
    "downwardAPI": {"defaultMode": 420, "items": _FIELDS},
    "projected": {
        "defaultMode": 420,
        "sources": {
            "secret": _NAMED,
            "configMap": _NAMED,
            "serviceAccountToken": {"audience": "", "expirationSeconds": 3600},
            "downwardAPI": {"items": _FIELDS},
            "clusterTrustBundle": {"labelSelector": SELECTOR},
        },
    },
    # A volume without a source is one of these.
    "emptyDir": {"medium": "", "sizeLimit": QUANTITY},
    "persistentVolumeClaim": {"readOnly": False},
    "ephemeral": {"volumeClaimTemplate": CLAIM_TEMPLATE},
    "image": {
        "pullPolicy": Derived(lambda beside: _pull_policy({"image": beside.get("reference")}))
    },
}
POD_SPEC: Final[Mapping[str, Shape]] = {
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "ephemeralContainers": _CONTAINER,
    "volumes": _VOLUME,
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
    "hostNetwork": False,
    "hostPID": False,
    "hostIPC": False,
    "hostname": "",
    "subdomain": "",
    "nodeName": "",
    "priorityClassName": "",
    "nodeSelector": TEXTS,
    "overhead": QUANTITIES,
    "resources": RESOURCES,
    "securityContext": {"seLinuxOptions": {}},
    "dnsConfig": {},
    # The deprecated and the current name of the same field.
    "serviceAccount": Derived(lambda beside: beside.get("serviceAccountName") or ""),
    "serviceAccountName": Derived(lambda beside: beside.get("serviceAccount") or ""),
    "tolerations": {"key": "", "operator": "", "value": "", "effect": ""},
    "affinity": {
        "nodeAffinity": {},
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_AFFINITY,
    },
    "topologySpreadConstraints": {
        "labelSelector": SELECTOR,
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
    },
}
POD_TEMPLATE: Final[Mapping[str, Shape]] = {
    "metadata": {"creationTimestamp": SERVER, "labels": TEXTS, "annotations": TEXTS},
    "spec": POD_SPEC,
}


def _without_admitted(spec: JsonObject) -> JsonObject:
    """Return a pod's spec without the fields that admission sets."""
    listed = {
        "volumes": [v for v in maps_at(spec, "volumes") if not _is_token(v)],
        "tolerations": [t for t in maps_at(spec, "tolerations") if not _is_usual(t)],
        **{
            field: [_without_token(c, spec) for c in maps_at(spec, field)]
            for field in ("containers", "initContainers")
        },
    }
    return {**spec, **{name: value for name, value in listed.items() if name in spec}}


def _without_token(container: JsonObject, spec: JsonObject) -> JsonObject:
    mounts = [m for m in maps_at(container, "volumeMounts") if not _is_token(m)]
    kept = {**container, "volumeMounts": mounts} if "volumeMounts" in container else container
    ports = maps_at(container, "ports")
    if ports and spec.get("hostNetwork"):
        kept = {**kept, "ports": [{"hostPort": p.get("containerPort"), **p} for p in ports]}
    return kept


def _is_token(named: JsonObject) -> bool:
    return str(named.get("name") or "").startswith(_TOKEN_VOLUME)


def _is_usual(toleration: JsonObject) -> bool:
    return toleration.get("key") in _TOLERATED and toleration.get("tolerationSeconds") == 300


def _with_admitted(spec: JsonObject, live: JsonObject) -> JsonObject:
    """Return a desired pod's spec with everything that admission may have added to the live one.

    The server lets hardly any field of a pod change, so an update must repeat what admission added.
    """
    return _overlaid(spec, live)


def _overlaid(desired: JsonObject, live: JsonObject) -> JsonObject:
    return {**live, **{name: _over(value, live.get(name)) for name, value in desired.items()}}


def _over(desired: JsonValue, live: JsonValue) -> JsonValue:
    if isinstance(desired, dict) and isinstance(live, dict):
        return _overlaid(desired, live)
    if not isinstance(live, list) or not (desired is None or isinstance(desired, list)):
        return live if desired is None else desired
    items, before = maps_at({"": desired or []}, ""), maps_at({"": live}, "")
    if len(items) != len(desired or []) or len(before) != len(live):
        return desired
    return _items_over(items, before)


def _items_over(desired: Sequence[JsonObject], live: Sequence[JsonObject]) -> list[JsonValue]:
    """Overlay the items of lists by their names if these are unique, or else by position."""
    names = [*map(_name, desired)], [*map(_name, live)]
    if any("" in some or len(set(some)) < len(some) for some in names):
        overlaid = [_overlaid(item, before) for item, before in zip(desired, live, strict=False)]
        return [*overlaid, *desired[len(live) :], *live[len(desired) :]]
    own = dict(zip(names[0], desired, strict=True))
    kept = [_overlaid(own.pop(name, {}), item) for name, item in zip(names[1], live, strict=True)]
    return [*kept, *own.values()]


def _name(item: JsonObject) -> str:
    """Return what identifies an item of a pod's lists; empty if it has no name."""
    if "mountPath" in item or "devicePath" in item:
        return str(item.get("mountPath") or item.get("devicePath"))
    if "effect" in item or "operator" in item:
        return f"{item.get('key')} {item.get('effect')} {item.get('value')}"  # a toleration
    return str(item.get("name") or "")


POD: Final[Mapping[str, Shape]] = {
    "spec": Filled(
        _without_admitted,
        {
            **POD_SPEC,
            "nodeName": ASSIGNED,
            "priority": SERVER,
            "priorityClassName": ASSIGNED,
            "preemptionPolicy": SERVER,
            "serviceAccount": ASSIGNED,
            "serviceAccountName": ASSIGNED,
            "imagePullSecrets": SERVER,
            "ephemeralContainers": SERVER,
        },
        _with_admitted,
    )
}
"""Bare pods are mostly immutable: assigned values must not look like a difference."""
