"""The parts that Calico's objects are put together from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pergola.api import marks
from pergola.api.objects import JsonObject, JsonValue

Images = Callable[[str], str]
"""From the name in the image vector to a reference."""

KUBE_SYSTEM: Final = "kube-system"
CALICO: Final = "crd.projectcalico.org"
CRITICAL: Final = {"node.gardener.cloud/critical-component": "true"}
SYSTEM_COMPONENT: Final = {"gardener.cloud/role": "system-component"}
GARDENER: Final = {"origin": "gardener"}
EGRESS: Final = {
    "networking.gardener.cloud/to-public-networks": "allowed",
    "networking.gardener.cloud/to-apiserver": "allowed",
    "networking.gardener.cloud/to-dns": "allowed",
}
"""Labels of pods that reach the API server by its public name."""

EVERYWHERE: Final[Sequence[JsonObject]] = (
    {"effect": "NoSchedule", "operator": "Exists"},
    {"effect": "NoExecute", "operator": "Exists"},
)
"""Tolerations for every taint: a node without a network is of no use."""

ENDPOINT_OVERRIDE: Final[Sequence[JsonObject]] = (
    {"configMapRef": {"name": "kubernetes-services-endpoint", "optional": True}},
)
"""The ConfigMap by which a user sets the address of the API server for Calico."""

LINUX: Final = {"kubernetes.io/os": "linux"}
NO_ESCALATION: Final[JsonObject] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
PRIVILEGED: Final[JsonObject] = {"privileged": True}
RUNTIME_SECCOMP: Final[JsonObject] = {"seccompProfile": {"type": "RuntimeDefault"}}


def obj(
    api_version: str,
    kind: str,
    name: str,
    *,
    namespace: str = KUBE_SYSTEM,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **content: object,
) -> JsonObject:
    """An object in kube-system; an empty `namespace` is for those of the whole cluster."""
    metadata: JsonObject = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def env(**variables: JsonValue) -> list[JsonValue]:
    """Environment variables: text as it is, a map as a source; None is left out."""
    return [_variable(name, value) for name, value in variables.items() if value is not None]


def flag(value: bool) -> str:
    """As environment variables say it."""
    return "true" if value else "false"


def config_key(name: str, key: str) -> JsonObject:
    """A variable's value from a ConfigMap."""
    return {"configMapKeyRef": {"name": name, "key": key}}


def field_path(path: str) -> JsonObject:
    """A variable's value from the pod itself."""
    return {"fieldRef": {"fieldPath": path}}


def requests(**amounts: JsonValue) -> JsonObject:
    """The least that a container needs; no limits, which would throttle the network."""
    return {"requests": dict(amounts)}


def host_path(name: str, path: str, kind: str = "") -> JsonObject:
    """A volume on the node."""
    source: JsonObject = {"path": path, **({"type": kind} if kind else {})}
    return {"name": name, "hostPath": source}


def mount(name: str, path: str, **more: JsonValue) -> JsonObject:
    """Where a container sees a volume."""
    return {"name": name, "mountPath": path, **more}


def service_account(name: str) -> JsonObject:
    """An identity; pods that use it ask for its token themselves."""
    return obj("v1", "ServiceAccount", name, automountServiceAccountToken=False)


def rule(
    groups: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> JsonObject:
    """A rule of a role for the resources of one group."""
    given = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [groups], "resources": list(resources), "verbs": list(verbs), **given}


def cluster_role(name: str, rules: Sequence[JsonObject], *subjects: JsonObject) -> list[JsonObject]:
    """A ClusterRole and its binding, of the same name."""
    group = "rbac.authorization.k8s.io"
    reference: JsonObject = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    return [
        obj(f"{group}/v1", "ClusterRole", name, namespace="", rules=list(rules)),
        obj(
            f"{group}/v1",
            "ClusterRoleBinding",
            name,
            namespace="",
            roleRef=reference,
            subjects=list(subjects),
        ),
    ]


def role(name: str, rules: Sequence[JsonObject], *subjects: JsonObject) -> list[JsonObject]:
    """A Role in kube-system and its binding, of the same name."""
    group = "rbac.authorization.k8s.io"
    reference: JsonObject = {"apiGroup": group, "kind": "Role", "name": name}
    return [
        obj(f"{group}/v1", "Role", name, rules=list(rules)),
        obj(f"{group}/v1", "RoleBinding", name, roleRef=reference, subjects=list(subjects)),
    ]


def account(name: str) -> JsonObject:
    """A ServiceAccount of kube-system as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": KUBE_SYSTEM}


def disruption_budget(name: str, app: str) -> JsonObject:
    """At most one pod away at a time; those that are not ready may always go."""
    spec: JsonObject = {
        "maxUnavailable": 1,
        "selector": {"matchLabels": {"k8s-app": app}},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return obj("policy/v1", "PodDisruptionBudget", name, labels={"k8s-app": app}, spec=spec)


def preserved(auto_scaling: str) -> dict[str, str]:
    """Keeps the requests that an autoscaler set from being taken back."""
    return {} if auto_scaling == "static" else {marks.PRESERVE_RESOURCES: "true"}


def _variable(name: str, value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {"name": name, "valueFrom": value}
    return {"name": name, "value": value}
