"""What the API server fills in where a manifest is silent, for the kinds of Kubernetes itself.

A node of the table is the default value at that place, a map of what is below (list items are
described by the node of their list), `ANY` where the server assigns something, or `Derived` where
the default depends on the fields beside it. Verified against a real API server by
`tests/integration/resource_manager/test_api_defaults.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pergola.api.objects import GroupKind, JsonValue
from pergola.kube.quantities import QuantityError, equal_quantities

Node: TypeAlias = "JsonValue | Mapping[str, Node] | _Any | Derived"


class _Any:
    """Whatever the server assigned."""


ANY: Final = _Any()


@dataclass(frozen=True, slots=True)
class Derived:
    """A default that depends on the fields beside it."""

    fits: Callable[[JsonValue, Mapping[str, JsonValue]], bool]


_QUANTITIES: Final = frozenset({"requests", "limits", "capacity", "hard", "overhead", "used"})
_QUANTITIES_ONE: Final = frozenset({"divisor", "sizeLimit", "averageValue", "storage", "value"})


def is_quantity_map(name: str) -> bool:
    """Whether a field of this name holds a quantity, or a map of quantities."""
    return name in _QUANTITIES or name in _QUANTITIES_ONE


def same_quantity(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same, as quantities if they are some."""
    if one == other:
        return True
    if isinstance(one, str | int | float) and isinstance(other, str | int | float):
        try:
            return equal_quantities(one, other)
        except QuantityError:
            return False
    return False


def _pull_policy(value: JsonValue, beside: Mapping[str, JsonValue]) -> bool:
    image = str(beside.get("image") or "")
    if "@" in image:
        return value == "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return value == ("Always" if tag in ("", "latest") else "IfNotPresent")


def _like(field: str) -> Derived:
    return Derived(lambda value, beside: value == beside.get(field))


_FIELD_REF: Final[Node] = {"apiVersion": "v1"}
_HANDLER: Final[Mapping[str, Node]] = {
    "httpGet": {"scheme": "HTTP", "path": "/"},
    "grpc": {"service": ""},
}
_PROBE: Final[Node] = {
    **_HANDLER,
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}
_CONTAINER: Final[Node] = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": Derived(_pull_policy),
    "ports": {"protocol": "TCP"},
    "env": {
        "valueFrom": {"fieldRef": _FIELD_REF, "resourceFieldRef": {"divisor": "0"}},
    },
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "lifecycle": {"postStart": _HANDLER, "preStop": _HANDLER},
    "securityContext": {"procMount": "Default"},
    # A limit without a request is also the request.
    "resources": {"requests": _like("limits")},
}
_ITEMS: Final[Node] = {"fieldRef": _FIELD_REF, "resourceFieldRef": {"divisor": "0"}}
_VOLUME: Final[Node] = {
    "secret": {"defaultMode": 420},
    "configMap": {"defaultMode": 420},
    "downwardAPI": {"defaultMode": 420, "items": _ITEMS},
    "projected": {
        "defaultMode": 420,
        "sources": {
            "serviceAccountToken": {"expirationSeconds": 3600},
            "downwardAPI": {"items": _ITEMS},
        },
    },
    "hostPath": {"type": ""},
    "emptyDir": {},
    "iscsi": {"iscsiInterface": "default"},
    "azureDisk": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeMode": "Filesystem"}}},
}
_POD_SPEC: Final[Mapping[str, Node]] = {
    "containers": _CONTAINER,
    "initContainers": _CONTAINER,
    "ephemeralContainers": _CONTAINER,
    "volumes": _VOLUME,
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "enableServiceLinks": True,
    "serviceAccount": _like("serviceAccountName"),
    "serviceAccountName": _like("serviceAccount"),
    "topologySpreadConstraints": {
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
    },
}
_POD_TEMPLATE: Final[Mapping[str, Node]] = {
    "metadata": {"creationTimestamp": ANY},
    "spec": _POD_SPEC,
}
_CLAIM_SPEC: Final[Node] = {"volumeMode": "Filesystem"}
_CLAIM_TEMPLATE: Final[Node] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"creationTimestamp": ANY},
    "spec": _CLAIM_SPEC,
    "status": ANY,
}
_DEPLOYMENT: Final[Mapping[str, Node]] = {
    "spec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
        },
        "template": _POD_TEMPLATE,
    }
}
_STATEFUL_SET: Final[Mapping[str, Node]] = {
    "spec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "template": _POD_TEMPLATE,
        "volumeClaimTemplates": _CLAIM_TEMPLATE,
    }
}
_DAEMON_SET: Final[Mapping[str, Node]] = {
    "spec": {
        "revisionHistoryLimit": 10,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
        "template": _POD_TEMPLATE,
    }
}
_JOB_SPEC: Final[Mapping[str, Node]] = {
    "backoffLimit": 6,
    "completions": Derived(lambda value, beside: value == (beside.get("parallelism") or 1)),
    "parallelism": 1,
    "completionMode": "NonIndexed",
    "suspend": False,
    "manualSelector": False,
    "podReplacementPolicy": "TerminatingOrFailed",
    "template": _POD_TEMPLATE,
}
_RULES_OF_PORTS: Final[Node] = {"ports": {"protocol": "TCP"}}
_WEBHOOK: Final[Mapping[str, Node]] = {
    "matchPolicy": "Equivalent",
    "timeoutSeconds": 10,
    "failurePolicy": "Fail",
    "namespaceSelector": {},
    "objectSelector": {},
    "rules": {"scope": "*"},
    "clientConfig": {"service": {"port": 443}},
}


def _role_ref_group(value: JsonValue, _: Mapping[str, JsonValue]) -> bool:
    return value == "rbac.authorization.k8s.io"


def _subject_group(value: JsonValue, beside: Mapping[str, JsonValue]) -> bool:
    if beside.get("kind") == "ServiceAccount":
        return value == ""
    return value == "rbac.authorization.k8s.io"


_BINDING: Final[Mapping[str, Node]] = {
    "roleRef": {"apiGroup": Derived(_role_ref_group)},
    "subjects": {"apiGroup": Derived(_subject_group)},
}
_CRD: Final[Mapping[str, Node]] = {
    "spec": {
        "conversion": {"strategy": "None"},
        "names": {
            "singular": Derived(lambda v, beside: v == str(beside.get("kind")).lower()),
            "listKind": Derived(lambda v, beside: v == f"{beside.get('kind')}List"),
        },
    }
}
_SERVICE: Final[Mapping[str, Node]] = {
    "spec": {
        "type": "ClusterIP",
        "clusterIP": ANY,
        "clusterIPs": ANY,
        "ipFamilies": ANY,
        "ipFamilyPolicy": ANY,
        "internalTrafficPolicy": "Cluster",
        "externalTrafficPolicy": "Cluster",
        "sessionAffinity": "None",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
        "allocateLoadBalancerNodePorts": True,
        "healthCheckNodePort": ANY,
        "ports": {"protocol": "TCP", "targetPort": _like("port"), "nodePort": ANY},
    }
}
_HPA: Final[Mapping[str, Node]] = {
    "spec": {
        "minReplicas": 1,
        "targetCPUUtilizationPercentage": 80,
        # What the server answers when no metric is named.
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 80},
                },
            }
        ],
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [
                    {"type": "Pods", "value": 4, "periodSeconds": 15},
                    {"type": "Percent", "value": 100, "periodSeconds": 15},
                ],
            },
            "scaleDown": {
                "selectPolicy": "Max",
                "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
            },
        },
    }
}
_STORAGE_CLASS: Final[Mapping[str, Node]] = {
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
}
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_NETWORKING: Final = "networking.k8s.io"

DEFAULTS: Final[Mapping[GroupKind, Mapping[str, Node]]] = {
    GroupKind("apps", "Deployment"): _DEPLOYMENT,
    GroupKind("apps", "StatefulSet"): _STATEFUL_SET,
    GroupKind("apps", "DaemonSet"): _DAEMON_SET,
    GroupKind("apps", "ReplicaSet"): {"spec": {"replicas": 1, "template": _POD_TEMPLATE}},
    GroupKind("batch", "Job"): {"spec": {**_JOB_SPEC, "selector": ANY}},
    GroupKind("batch", "CronJob"): {
        "spec": {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {"creationTimestamp": ANY}, "spec": _JOB_SPEC},
        }
    },
    GroupKind("", "Pod"): {
        "spec": {
            **_POD_SPEC,
            "nodeName": ANY,
            "tolerations": ANY,
            "priority": ANY,
            "preemptionPolicy": ANY,
            "priorityClassName": ANY,
        }
    },
    GroupKind("", "Service"): _SERVICE,
    GroupKind("", "Secret"): {"type": "Opaque"},
    GroupKind("", "ServiceAccount"): {"secrets": ANY, "imagePullSecrets": ANY},
    GroupKind("", "Namespace"): {"spec": {"finalizers": ["kubernetes"]}},
    GroupKind("", "PersistentVolumeClaim"): {
        "spec": {
            "volumeMode": "Filesystem",
            "volumeName": ANY,
            "storageClassName": ANY,
        }
    },
    GroupKind("", "PersistentVolume"): {
        "spec": {
            **(_VOLUME if isinstance(_VOLUME, Mapping) else {}),
            "volumeMode": "Filesystem",
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": ANY,
        }
    },
    GroupKind("", "LimitRange"): {"spec": {"limits": ANY}},
    GroupKind("", "Node"): {"spec": {"podCIDR": ANY, "podCIDRs": ANY, "taints": ANY}},
    GroupKind(_RBAC, "RoleBinding"): _BINDING,
    GroupKind(_RBAC, "ClusterRoleBinding"): _BINDING,
    GroupKind("policy", "PodDisruptionBudget"): {},
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): _HPA,
    GroupKind(_NETWORKING, "NetworkPolicy"): {
        "spec": {"policyTypes": ANY, "ingress": _RULES_OF_PORTS, "egress": _RULES_OF_PORTS}
    },
    GroupKind(_NETWORKING, "Ingress"): {"spec": {"ingressClassName": ANY}},
    GroupKind(_NETWORKING, "IngressClass"): {"spec": {"parameters": {"scope": "Cluster"}}},
    GroupKind("storage.k8s.io", "StorageClass"): _STORAGE_CLASS,
    GroupKind("storage.k8s.io", "CSIDriver"): {
        "spec": {
            "attachRequired": True,
            "podInfoOnMount": False,
            "storageCapacity": False,
            "fsGroupPolicy": "ReadWriteOnceWithFSType",
            "volumeLifecycleModes": ["Persistent"],
            "requiresRepublish": False,
            "seLinuxMount": False,
        }
    },
    GroupKind("scheduling.k8s.io", "PriorityClass"): {
        "preemptionPolicy": "PreemptLowerPriority",
    },
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): _CRD,
    GroupKind("apiregistration.k8s.io", "APIService"): {"spec": {"service": {"port": 443}}},
    GroupKind(_ADMISSION, "MutatingWebhookConfiguration"): {
        "webhooks": {**_WEBHOOK, "reinvocationPolicy": "Never"}
    },
    GroupKind(_ADMISSION, "ValidatingWebhookConfiguration"): {"webhooks": _WEBHOOK},
}
