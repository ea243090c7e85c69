"""How Calico grows with the cluster: replicas and requests (spec 40 §5.5)."""

import json
from collections.abc import Sequence
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.providers.networking.calico.render import node, typha
from pergola.providers.networking.calico.render.compose import (
    LINUX,
    NO_ESCALATION,
    RUNTIME_SECCOMP,
    SYSTEM_COMPONENT,
    TO_API_SERVER,
    Images,
    account,
    cluster_role,
    obj,
    requests,
    role,
    rule,
    service_account,
)
from pergola.providers.networking.calico.render.vertical_pod_autoscalers import (
    vertical_pod_autoscaler,
)
from pergola.providers.networking.calico.values import Values

TYPHA_HORIZONTAL: Final = "calico-typha-horizontal-autoscaler"
TYPHA_VERTICAL: Final = "calico-typha-vertical-autoscaler"
NODE_VERTICAL: Final = "calico-node-vertical-autoscaler"

REPLICAS_BY_NODES: Final = (
    (1, 1), (2, 2), (100, 3), (250, 4), (500, 5), (1000, 6), (1500, 7), (2000, 8),
)  # fmt: skip
_TYPHA_REQUESTS: Final[JsonObject] = {
    "cpu": {"base": "180m", "step": "140m", "nodesPerStep": 17, "max": "1000m"},
    "memory": {"base": "180Mi", "step": "70Mi", "nodesPerStep": 17, "max": "2000Mi"},
}
_NODE_REQUESTS: Final[JsonObject] = {
    "memory": {"base": "50Mi", "step": "50Mi", "nodesPerStep": 10, "max": "1400Mi"},
}


class Target(NamedTuple):
    """The container whose requests grow with the cluster, and how they do."""

    kind: str
    name: str
    container: str
    growth: JsonObject


TYPHA: Final = Target("deployment", typha.DEPLOYMENT, typha.NAME, _TYPHA_REQUESTS)
NODE: Final = Target("daemonset", node.NAME, node.NAME, _NODE_REQUESTS)
_HEALTHZ: Final[JsonObject] = {
    "httpGet": {"path": "/healthz", "port": 8080},
    "initialDelaySeconds": 10,
    "periodSeconds": 30,
}
_NOBODY: Final = 65534
_CONFIG: Final = "/etc/config"


def scaling_objects(values: Values, images: Images) -> list[JsonObject]:
    """Everything that scales, for the mode that is possible in the Shoot."""
    objects = horizontal(images) if values.typha else []
    if values.auto_scaling == "cluster-proportional":
        if values.typha:
            objects += vertical(TYPHA_VERTICAL, TYPHA, images)
        objects += vertical(NODE_VERTICAL, NODE, images)
    elif values.auto_scaling == "vpa":
        objects += _vertical_pod_autoscalers(values)
    return objects


def horizontal(images: Images) -> list[JsonObject]:
    """Replicas of Typha by the number of nodes."""
    ladder = json.dumps({"nodesToReplicas": REPLICAS_BY_NODES})
    arguments = [
        "/cluster-proportional-autoscaler",
        "--namespace=kube-system",
        f"--configmap={TYPHA_HORIZONTAL}",
        f"--target=deployment/{typha.DEPLOYMENT}",
        "--logtostderr=true",
    ]
    rules = [
        rule("", ["configmaps"], ["get"], [TYPHA_HORIZONTAL]),
        rule("apps", ["deployments/scale"], ["get", "update"], [typha.DEPLOYMENT]),
    ]
    return [
        obj("v1", "ConfigMap", TYPHA_HORIZONTAL, data={"ladder": ladder}),
        _deployment(TYPHA_HORIZONTAL, images("calico-cpa"), arguments, probe=_HEALTHZ),
        *_identity(TYPHA_HORIZONTAL, rules),
    ]


def vertical(name: str, target: Target, images: Images) -> list[JsonObject]:
    """Requests of one container by the number of nodes."""
    arguments = [
        "/cpvpa",
        f"--target={target.kind}/{target.name}",
        "--namespace=kube-system",
        "--logtostderr=true",
        "--poll-period-seconds=30",
        f"--config-file={_CONFIG}/{name}",
    ]
    rules = [rule("apps", [f"{target.kind}s"], ["get", "patch"], [target.name])]
    config = json.dumps({target.container: {"requests": target.growth}})
    return [
        obj("v1", "ConfigMap", name, data={name: config}),
        _deployment(name, images("calico-cpva"), arguments, config=name),
        *_identity(name, rules),
    ]


def _identity(name: str, rules: Sequence[JsonObject]) -> list[JsonObject]:
    nodes = [rule("", ["nodes"], ["list", "watch"])]
    return [
        service_account(name),
        *cluster_role(f"system:{name}", nodes, account(name)),
        *role(f"system:{name}", rules, account(name)),
    ]


def _deployment(
    name: str,
    image: str,
    command: Sequence[str],
    *,
    config: str | None = None,
    probe: JsonObject | None = None,
) -> JsonObject:
    labels = {"k8s-app": name, **SYSTEM_COMPONENT, **TO_API_SERVER}
    container: JsonObject = {
        "name": "autoscaler",
        "image": image,
        "command": list(command),
        "resources": requests(cpu="10m", memory="20Mi"),
        "securityContext": {**NO_ESCALATION, "runAsNonRoot": True, "runAsUser": _NOBODY},
    }
    pod: JsonObject = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": name,
        "automountServiceAccountToken": True,
        "nodeSelector": dict(LINUX),
        "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        "securityContext": {**RUNTIME_SECCOMP, "runAsNonRoot": True, "fsGroup": _NOBODY},
        "containers": [container],
    }
    if probe:
        container["livenessProbe"] = probe
    if config:
        container["volumeMounts"] = [{"name": "config", "mountPath": _CONFIG, "readOnly": True}]
        pod["volumes"] = [{"name": "config", "configMap": {"name": config}}]
    spec: JsonObject = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": {"k8s-app": name}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return obj("apps/v1", "Deployment", name, labels=labels, spec=spec)


def _vertical_pod_autoscalers(values: Values) -> list[JsonObject]:
    nodes = values.resources.get("node", {})
    scalers = [vertical_pod_autoscaler(node.NAME, "DaemonSet", node.NAME, nodes)]
    if values.typha:
        least = values.resources.get("typha", {})
        scalers.append(vertical_pod_autoscaler(typha.DEPLOYMENT, "Deployment", typha.NAME, least))
    return scalers
