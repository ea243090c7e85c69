"""Defaults that the API server fills in, for the kinds of Kubernetes itself.

Each kind maps to the shape of its fields other than apiVersion, kind, metadata and status. Verified
on a real API server by `tests/integration/resource_manager/test_api_defaults.py`.
"""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import GroupKind, JsonObject, JsonValue, map_at, maps_at
from pergola.kube.equality import defaults_extending as extending
from pergola.kube.equality import defaults_reports as reports
from pergola.kube.equality import defaults_workloads as workloads
from pergola.kube.equality.defaults_pods import (
    CLAIM_SPEC,
    POD,
    POD_TEMPLATE,
    SELECTOR,
    SELECTOR_FIELDS,
    SOURCES,
)
from pergola.kube.equality.shapes import (
    ASSIGNED,
    BASE64,
    EXACT,
    QUANTITIES,
    SERVER,
    TEXTS,
    Beside,
    Derived,
    Each,
    Filled,
    Shape,
)

_RBAC: Final = "rbac.authorization.k8s.io"


def shape_of(kind: GroupKind) -> Shape:
    """Return the shape for comparing objects of a kind; exact if its defaults are unknown."""
    return _SHAPES.get(kind, EXACT)


_SERVICE: Final[Mapping[str, Shape]] = {
    "spec": {
        "type": "ClusterIP",
        "clusterIP": ASSIGNED,
        "clusterIPs": ASSIGNED,
        "externalName": "",
        "ipFamilies": ASSIGNED,
        "ipFamilyPolicy": ASSIGNED,
        "internalTrafficPolicy": "Cluster",
        "externalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
        "allocateLoadBalancerNodePorts": True,
        "healthCheckNodePort": ASSIGNED,
        "loadBalancerIP": "",
        "publishNotReadyAddresses": False,
        "selector": TEXTS,
        "ports": {
            "name": "",
            "protocol": "TCP",
            "targetPort": Derived(lambda beside: beside.get("port")),
            "nodePort": ASSIGNED,
        },
    }
}


def _policy_types(beside: Beside) -> JsonValue:
    return ["Ingress", "Egress"] if beside.get("egress") else ["Ingress"]


_PEER: Final[Mapping[str, Shape]] = {"podSelector": SELECTOR, "namespaceSelector": SELECTOR}
_PEER_PORTS: Final[Mapping[str, Shape]] = {"protocol": "TCP"}
_NETWORK_POLICY: Final[Mapping[str, Shape]] = {
    "spec": {
        "podSelector": SELECTOR_FIELDS,
        "policyTypes": Derived(_policy_types),
        "ingress": {"ports": _PEER_PORTS, "from": _PEER},
        "egress": {"ports": _PEER_PORTS, "to": _PEER},
    }
}
_BACKEND: Final[Mapping[str, Shape]] = {"service": {"port": {"name": "", "number": 0}}}
_INGRESS: Final[Mapping[str, Shape]] = {
    "spec": {
        "ingressClassName": SERVER,
        "defaultBackend": _BACKEND,
        "rules": {"host": "", "http": {"paths": {"path": "", "backend": _BACKEND}}},
        "tls": {"secretName": ""},
    }
}


def _group_of_subject(beside: Beside) -> JsonValue:
    return "" if beside.get("kind") == "ServiceAccount" else _RBAC


_BINDING: Final[Mapping[str, Shape]] = {
    "roleRef": {"apiGroup": _RBAC},
    "subjects": {"apiGroup": Derived(_group_of_subject), "namespace": ""},
}


def _without_aggregated(role: JsonObject) -> JsonObject:
    """Ignore the rules of an aggregated role, which a controller sets."""
    return role if not role.get("aggregationRule") else {**role, "rules": None}


def _with_aggregated(role: JsonObject, live: JsonObject) -> JsonObject:
    """Keep the rules of an aggregated role, which would otherwise be empty for a moment."""
    return {**role, "rules": live["rules"]} if _is_aggregated(role, live) else role


def _is_aggregated(role: JsonObject, live: JsonObject) -> bool:
    return bool(role.get("aggregationRule") and live.get("aggregationRule") and live.get("rules"))


def _with_defaults_of_limits(limit: JsonObject) -> JsonObject:
    """Default a limit to the maximum, and a request to the limit or the minimum."""
    if limit.get("type") != "Container":
        return limit
    default = {**map_at(limit, "max"), **map_at(limit, "default")}
    request = {**map_at(limit, "min"), **default, **map_at(limit, "defaultRequest")}
    return {**limit, "default": default, "defaultRequest": request}


_LIMITS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_LIMIT_RANGE: Final[Mapping[str, Shape]] = {
    "spec": {"limits": Filled(_with_defaults_of_limits, dict.fromkeys(_LIMITS, QUANTITIES))}
}
_OBJECT_REFERENCE: Final = (
    "apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath"
)  # fmt: skip
_PERSISTENT_VOLUME: Final[Mapping[str, Shape]] = {
    "spec": {
        **SOURCES,
        "csi": {"readOnly": False, "fsType": ""},
        "capacity": QUANTITIES,
        "volumeMode": "Filesystem",
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": dict.fromkeys(_OBJECT_REFERENCE, SERVER),
        # Neither can be removed once it is set.
        "nodeAffinity": SERVER,
        "volumeAttributesClassName": SERVER,
    }
}
_CSI_DRIVER: Final[Mapping[str, Shape]] = {
    "spec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
        "serviceAccountTokenInSecrets": False,
        "tokenRequests": {"audience": ""},
    }
}
_TAINTED_BY_CONTROLLERS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def _is_of_controllers(taint: JsonObject) -> bool:
    return str(taint.get("key")).startswith(_TAINTED_BY_CONTROLLERS)


def _without_taints_of_controllers(spec: JsonObject) -> JsonObject:
    if "taints" not in spec:
        return spec
    return {**spec, "taints": [t for t in maps_at(spec, "taints") if not _is_of_controllers(t)]}


def _with_taints_of_controllers(spec: JsonObject, live: JsonObject) -> JsonObject:
    """Keep the state of a Node, which controllers express as taints."""
    own = maps_at(spec, "taints")
    named = {(taint.get("key"), taint.get("effect")) for taint in own}
    added = [
        taint
        for taint in maps_at(live, "taints")
        if _is_of_controllers(taint) and (taint.get("key"), taint.get("effect")) not in named
    ]
    return {**spec, "taints": [*own, *added]} if added else spec


_NODE: Final[Mapping[str, Shape]] = {
    "spec": Filled(
        _without_taints_of_controllers,
        {
            "podCIDR": ASSIGNED,
            "podCIDRs": ASSIGNED,
            "providerID": ASSIGNED,
            "taints": SERVER,
            "unschedulable": False,
        },
        _with_taints_of_controllers,
    )
}
_PRIORITY_LEVEL: Final[Mapping[str, Shape]] = {
    "spec": {
        "limited": {
            "nominalConcurrencyShares": 30,
            "lendablePercent": 0,
            "limitResponse": {
                "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
            },
        },
        "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
    }
}
_RUNTIME_CLASS: Final[Mapping[str, Shape]] = {
    "overhead": {"podFixed": QUANTITIES},
    "scheduling": {
        "nodeSelector": TEXTS,
        "tolerations": {"key": "", "operator": "", "value": "", "effect": ""},
    },
}

_KINDS: Final[Mapping[str, Mapping[str, Shape]]] = {
    "": {
        "ConfigMap": {"data": TEXTS, "binaryData": Each(BASE64)},
        "Endpoints": reports.ENDPOINTS,
        "Event": reports.CORE_EVENT,
        "LimitRange": _LIMIT_RANGE,
        "Namespace": {"spec": {"finalizers": ["kubernetes"]}},
        "Node": _NODE,
        "PersistentVolume": _PERSISTENT_VOLUME,
        "PersistentVolumeClaim": {"spec": CLAIM_SPEC},
        "Pod": POD,
        "PodTemplate": {"template": POD_TEMPLATE},
        "ReplicationController": workloads.REPLICATION_CONTROLLER,
        "ResourceQuota": {"spec": {"hard": QUANTITIES}},
        "Secret": {"type": "Opaque", "data": Each(BASE64)},
        "Service": _SERVICE,
        "ServiceAccount": {"secrets": SERVER, "imagePullSecrets": SERVER},
    },
    "apps": {
        "ControllerRevision": {"data": EXACT, "revision": 0},
        "DaemonSet": workloads.DAEMON_SET,
        "Deployment": workloads.DEPLOYMENT,
        "ReplicaSet": workloads.REPLICA_SET,
        "StatefulSet": workloads.STATEFUL_SET,
    },
    "batch": {"CronJob": workloads.CRON_JOB, "Job": workloads.JOB},
    "autoscaling": {"HorizontalPodAutoscaler": workloads.HORIZONTAL_POD_AUTOSCALER},
    "policy": {"PodDisruptionBudget": workloads.POD_DISRUPTION_BUDGET},
    "networking.k8s.io": {
        "Ingress": _INGRESS,
        "IngressClass": {"spec": {"parameters": {"scope": "Cluster"}}},
        "IPAddress": {},
        "NetworkPolicy": _NETWORK_POLICY,
        "ServiceCIDR": {},
    },
    _RBAC: {
        "ClusterRole": Filled(_without_aggregated, {}, _with_aggregated),
        "ClusterRoleBinding": _BINDING,
        "Role": {},
        "RoleBinding": _BINDING,
    },
    "storage.k8s.io": {
        "CSIDriver": _CSI_DRIVER,
        "CSINode": {"spec": {"drivers": ASSIGNED}},
        "CSIStorageCapacity": reports.STORAGE_CAPACITY,
        "StorageClass": {
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "Immediate",
            "parameters": TEXTS,
        },
        "VolumeAttachment": {},
        "VolumeAttributesClass": {"parameters": TEXTS},
    },
    "certificates.k8s.io": {"CertificateSigningRequest": reports.SIGNING_REQUEST},
    "coordination.k8s.io": {"Lease": reports.LEASE},
    "discovery.k8s.io": {"EndpointSlice": reports.ENDPOINT_SLICE},
    "events.k8s.io": {"Event": reports.EVENT},
    "resource.k8s.io": {
        "DeviceClass": reports.DEVICE_CLASS,
        "ResourceClaim": reports.CLAIM,
        "ResourceClaimTemplate": reports.CLAIM_TEMPLATE,
        "ResourceSlice": reports.RESOURCE_SLICE,
    },
    "scheduling.k8s.io": {
        "PriorityClass": {
            "preemptionPolicy": "PreemptLowerPriority",
            "globalDefault": False,
            "description": "",
        }
    },
    "apiextensions.k8s.io": {"CustomResourceDefinition": extending.CUSTOM_RESOURCE_DEFINITION},
    "apiregistration.k8s.io": {"APIService": extending.API_SERVICE},
    "admissionregistration.k8s.io": {
        "MutatingWebhookConfiguration": extending.MUTATING_WEBHOOKS,
        "MutatingAdmissionPolicy": extending.MUTATING_POLICY,
        "MutatingAdmissionPolicyBinding": extending.ADMISSION_POLICY_BINDING,
        "ValidatingWebhookConfiguration": extending.VALIDATING_WEBHOOKS,
        "ValidatingAdmissionPolicy": extending.ADMISSION_POLICY,
        "ValidatingAdmissionPolicyBinding": extending.ADMISSION_POLICY_BINDING,
    },
    "flowcontrol.apiserver.k8s.io": {
        "FlowSchema": {"spec": {"matchingPrecedence": 1000}},
        "PriorityLevelConfiguration": _PRIORITY_LEVEL,
    },
    "node.k8s.io": {"RuntimeClass": _RUNTIME_CLASS},
}
_SHAPES: Final[Mapping[GroupKind, Shape]] = {
    GroupKind(group, kind): shape
    for group, kinds in _KINDS.items()
    for kind, shape in kinds.items()
}
