"""The parts that cilium's objects are put together from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.providers.networking.cilium.values import Values

Images = Callable[[str], str]
"""From a name in the image vector to a reference."""

NAMESPACE: Final = "kube-system"
CRITICAL_COMPONENT: Final = {
    "node.gardener.cloud/critical-component": "true",
    "gardener.cloud/role": "system-component",
}
SYSTEM_COMPONENT: Final = {"gardener.cloud/role": "system-component"}
HIGH_AVAILABILITY: Final = "high-availability-config.resources.gardener.cloud/type"
TO_API_SERVER: Final = {"networking.gardener.cloud/to-apiserver": "allowed"}
TO_DNS: Final = {"networking.gardener.cloud/to-dns": "allowed"}
LINUX: Final = {"kubernetes.io/os": "linux"}
RUNTIME_DEFAULT: Final[JsonObject] = {"type": "RuntimeDefault"}
SYSTEM_PRIORITY: Final = "system-cluster-critical"
"""A class that every cluster has; without its class, no pod is created."""

ON_EVERY_NODE: Final[Sequence[JsonObject]] = ({"operator": "Exists"},)
"""Tolerates everything: no node is ready without its network."""

_RBAC: Final = "rbac.authorization.k8s.io"


def obj(
    api_version: str,
    kind: str,
    name: str,
    *,
    namespace: str | None = NAMESPACE,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **content: object,
) -> JsonObject:
    """An object; one that is cluster-scoped has no namespace."""
    metadata: JsonObject = {"name": name}
    for field, value in (
        ("namespace", namespace),
        ("labels", labels),
        ("annotations", annotations),
    ):
        if value:
            metadata[field] = value if isinstance(value, str) else dict(value)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def app(name: str) -> dict[str, str]:
    """The labels by which everybody knows cilium's pods."""
    return {"k8s-app": name, "app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "cilium"}


def service_account(name: str) -> JsonObject:
    """An identity for pods."""
    return obj("v1", "ServiceAccount", name, automountServiceAccountToken=False)


def rule(
    group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> JsonObject:
    """A rule of a role; limited to objects of these names if there are any."""
    found: JsonObject = {
        "apiGroups": [group],
        "resources": list(resources),
        "verbs": list(verbs),
    }
    return found | {"resourceNames": list(names)} if names else found


def role(kind: str, name: str, account: str, rules: Sequence[JsonObject]) -> list[JsonObject]:
    """A `Role` or `ClusterRole` and its binding to a ServiceAccount."""
    namespace = NAMESPACE if kind == "Role" else None
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    reference = {"apiGroup": _RBAC, "kind": kind, "name": name}
    return [
        obj(f"{_RBAC}/v1", kind, name, namespace=namespace, rules=list(rules)),
        obj(
            f"{_RBAC}/v1",
            f"{kind}Binding",
            name,
            namespace=namespace,
            roleRef=reference,
            subjects=[subject],
        ),
    ]


def env(name: str, value: str) -> JsonObject:
    """An environment variable."""
    return {"name": name, "value": value}


def env_of_pod(name: str, path: str) -> JsonObject:
    """An environment variable with a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def api_server_env(values: Values) -> list[JsonObject]:
    """How a container finds the API server while nobody routes its Service yet."""
    if values.api_server is None:
        return []
    return [
        env("KUBERNETES_SERVICE_HOST", values.api_server.host),
        env("KUBERNETES_SERVICE_PORT", str(values.api_server.port)),
    ]


def port(name: str, number: int, protocol: str = "TCP") -> JsonObject:
    """A port of a container in the network of its pod."""
    return {"name": name, "containerPort": number, "protocol": protocol}


def host_port(name: str, number: int) -> JsonObject:
    """A port of a container in the network of its node."""
    return {**port(name, number), "hostPort": number}


def service_port(
    name: str, number: int, target: str | int | None = None, protocol: str = "TCP"
) -> JsonObject:
    """A port of a Service."""
    return {
        "name": name,
        "port": number,
        "protocol": protocol,
        "targetPort": number if target is None else target,
    }


def mount(name: str, path: str, **options: JsonValue) -> JsonObject:
    """Where a container sees a volume."""
    return {"name": name, "mountPath": path, **options}


def host_path(name: str, path: str, kind: str = "") -> JsonObject:
    """A volume of the node; `kind` is such as `DirectoryOrCreate`."""
    source: JsonObject = {"path": path, **({"type": kind} if kind else {})}
    return {"name": name, "hostPath": source}


def config_map_volume(name: str, config_map: str, **options: JsonValue) -> JsonObject:
    """A volume with the keys of a ConfigMap."""
    return {"name": name, "configMap": {"name": config_map, **options}}


def secret_item(secret: str, items: Mapping[str, str]) -> JsonObject:
    """A part of a projected volume; pods start before the Secret exists."""
    listed = [{"key": key, "path": path} for key, path in items.items()]
    return {"secret": {"name": secret, "optional": True, "items": listed}}


def requests(cpu: str, memory: str) -> JsonObject:
    """What a container needs; without limits, since a throttled agent stalls its node."""
    return {"requests": {"cpu": cpu, "memory": memory}}


def http_probe(
    path: str, number: int | str, *, host: str | None = None, **timing: JsonValue
) -> JsonObject:
    """A probe by HTTP; `timing` such as `periodSeconds=10`."""
    get: JsonObject = {"path": path, "port": number, "scheme": "HTTP"}
    return {"httpGet": get | ({"host": host} if host is not None else {}), **timing}


def loopback(values: Values) -> str:
    """The node's own address in a family that is in use."""
    return "127.0.0.1" if values.ipv4 else "::1"


def unprivileged() -> JsonObject:
    """For containers that need nothing of their node."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def capable(*capabilities: str, escalates: bool = False) -> JsonObject:
    """For containers that are root on their node, but only as far as they need."""
    found: JsonObject = {
        "runAsUser": 0,
        "capabilities": {"add": list(capabilities), "drop": ["ALL"]},
        "seLinuxOptions": {"level": "s0", "type": "spc_t"},
    }
    # Linux lets CAP_SYS_ADMIN escalate, and the API server refuses to deny it then.
    return found if escalates else found | {"allowPrivilegeEscalation": False}


def one_per_node(labels: Mapping[str, str]) -> JsonObject:
    """An affinity that puts pods of the same labels on different nodes if it can."""
    term = {
        "labelSelector": {"matchLabels": dict(labels)},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def disruption_budget(name: str, labels: Mapping[str, str]) -> JsonObject:
    """No more than one pod is evicted at a time."""
    return obj(
        "policy/v1",
        "PodDisruptionBudget",
        name,
        labels=labels,
        spec={
            "maxUnavailable": 1,
            "selector": {"matchLabels": dict(labels)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )
