"""How Calico grows with the cluster: replicas and requests (spec 40 §5.5)."""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.providers.networking.calico.render import node, typha
from pergola.providers.networking.calico.render.compose import (
    EGRESS,
    GARDENER,
    NO_ESCALATION,
    RUNTIME_SECCOMP,
    Images,
    account,
    cluster_role,
    obj,
    requests,
    role,
    rule,
    service_account,
)
from pergola.providers.networking.calico.render.config_map import checksum
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


_NOBODY: Final = 65534


class Autoscaler(NamedTuple):
    """A Deployment that scales one workload by the number of nodes.

    Attributes:
        app: the label `k8s-app` of its pods, which cannot be changed.
        account: its ServiceAccount; roles and bindings have the same name.
        user: the user that its process runs as.
        group: the group that its process runs as.
    """

    name: str
    app: str
    account: str
    priority: str
    user: int
    group: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Growth(NamedTuple):
    """The requests of one container, by the number of nodes.

    Attributes:
        key: of the ConfigMap.
    """

    autoscaler: Autoscaler
    key: str
    kind: str
    workload: str
    container: str
    requests: JsonObject


_RECREATED: Final = {marks.DELETE_ON_INVALID_UPDATE: "true"}
_HORIZONTAL: Final = Autoscaler(
    TYPHA_HORIZONTAL, TYPHA_HORIZONTAL, "typha-cpha", "gardener-shoot-system-800", 65532, 65532,
    GARDENER, _RECREATED,
)  # fmt: skip
TYPHA: Final = Growth(
    Autoscaler(
        TYPHA_VERTICAL, TYPHA_VERTICAL, "typha-cpva", "gardener-shoot-system-800", _NOBODY, 1,
        GARDENER, _RECREATED,
    ),
    "typha-autoscaler", "deployment", typha.DEPLOYMENT, typha.NAME, _TYPHA_REQUESTS,
)  # fmt: skip
NODE: Final = Growth(
    Autoscaler(
        NODE_VERTICAL, "calico-node-autoscaler", "calico-node-cpva", "system-cluster-critical",
        _NOBODY, 1, {}, {},
    ),
    "node-autoscaler", "daemonset", node.NAME, node.NAME, _NODE_REQUESTS,
)  # fmt: skip
_HEALTHZ: Final[JsonObject] = {
    "httpGet": {"path": "/healthz", "port": 8080},
    "initialDelaySeconds": 10,
    "periodSeconds": 30,
}
_CONFIG: Final = "/etc/config"


def scaling_objects(values: Values, images: Images) -> list[JsonObject]:
    """Everything that scales, for the mode that is possible in the Shoot."""
    objects = horizontal(images) if values.typha else []
    if values.auto_scaling == "cluster-proportional":
        if values.typha:
            objects += vertical(TYPHA, images)
        objects += vertical(NODE, images)
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
    config = obj("v1", "ConfigMap", TYPHA_HORIZONTAL, data={"ladder": ladder})
    container: JsonObject = {
        "image": images("calico-cpa"),
        "command": list(arguments),
        "livenessProbe": _HEALTHZ,
    }
    return [
        config,
        _deployment(_HORIZONTAL, container, config),
        *_identity(_HORIZONTAL.account, rules),
    ]


def vertical(growth: Growth, images: Images) -> list[JsonObject]:
    """Return the objects that scale the requests of one container."""
    scaler = growth.autoscaler
    arguments = [
        "/cpvpa",
        f"--target={growth.kind}/{growth.workload}",
        "--namespace=kube-system",
        "--logtostderr=true",
        "--poll-period-seconds=30",
        f"--config-file={_CONFIG}/{growth.key}",
    ]
    rules = [rule("apps", [f"{growth.kind}s"], ["get", "patch"], [growth.workload])]
    content = json.dumps({growth.container: {"requests": growth.requests}})
    config = obj("v1", "ConfigMap", scaler.name, data={growth.key: content})
    container: JsonObject = {
        "image": images("calico-cpva"),
        "command": list(arguments),
        "volumeMounts": [{"name": "config", "mountPath": _CONFIG}],
    }
    volume: JsonObject = {"name": "config", "configMap": {"name": scaler.name}}
    return [
        config,
        _deployment(scaler, container, config, volumes=[volume]),
        *_identity(scaler.account, rules),
    ]


def _identity(name: str, rules: Sequence[JsonObject]) -> list[JsonObject]:
    nodes = [rule("", ["nodes"], ["get", "list", "watch"])]
    return [
        service_account(name),
        *cluster_role(name, nodes, account(name)),
        *role(name, rules, account(name)),
    ]


def _deployment(
    scaler: Autoscaler, container: JsonObject, config: JsonObject, **pod: object
) -> JsonObject:
    """A change of the ConfigMap makes a new pod: the programs read it only once."""
    own = {"k8s-app": scaler.app}
    template: JsonObject = {
        "metadata": {
            "labels": {**own, **scaler.labels, **EGRESS},
            "annotations": {f"checksum/configmap-{scaler.name}": checksum(config)},
        },
        "spec": {**_pod(scaler, container), **pod},
    }
    spec: JsonObject = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "selector": {"matchLabels": own},
        "template": template,
    }
    return obj(
        "apps/v1", "Deployment", scaler.name, labels=own, annotations=scaler.annotations, spec=spec
    )


def _pod(scaler: Autoscaler, container: JsonObject) -> JsonObject:
    return {
        "priorityClassName": scaler.priority,
        "serviceAccountName": scaler.account,
        "automountServiceAccountToken": True,
        "dnsPolicy": "Default",
        "securityContext": {
            **RUNTIME_SECCOMP,
            "runAsNonRoot": True,
            "runAsUser": scaler.user,
            "fsGroup": scaler.group,
            "supplementalGroups": [scaler.group],
        },
        "containers": [
            {
                "name": "autoscaler",
                **container,
                "resources": requests(cpu="10m", memory="50Mi"),
                "securityContext": NO_ESCALATION,
            }
        ],
    }


def _vertical_pod_autoscalers(values: Values) -> list[JsonObject]:
    nodes = values.resources.get("node", {})
    scalers = [vertical_pod_autoscaler(node.NAME, "DaemonSet", node.NAME, nodes)]
    if values.typha:
        least = values.resources.get("typha", {})
        scalers.append(vertical_pod_autoscaler(typha.DEPLOYMENT, "Deployment", typha.NAME, least))
    return scalers
