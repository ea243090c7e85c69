"""The replicas and requests of Calico by the size of the cluster (spec 40 §5.5)."""

import json
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    SYSTEM_PRIORITY,
    Images,
    config_map_volume,
    http_probe,
    manifest,
    mount,
    rule,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.providers.networking.calico.render import node, typha
from pergola.providers.networking.calico.render.autoscaler import (
    NOBODY,
    RECREATED,
    Autoscaler,
    deployment,
    identity,
)
from pergola.providers.networking.calico.render.conventions import GARDENER
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


_HORIZONTAL: Final = Autoscaler(
    TYPHA_HORIZONTAL, TYPHA_HORIZONTAL, "typha-cpha", "gardener-shoot-system-800", 65532, 65532,
    GARDENER, RECREATED,
)  # fmt: skip
TYPHA: Final = Growth(
    Autoscaler(
        TYPHA_VERTICAL, TYPHA_VERTICAL, "typha-cpva", "gardener-shoot-system-800", NOBODY, 1,
        GARDENER, RECREATED,
    ),
    "typha-autoscaler", "deployment", typha.DEPLOYMENT, typha.NAME, _TYPHA_REQUESTS,
)  # fmt: skip
NODE: Final = Growth(
    Autoscaler(
        NODE_VERTICAL, "calico-node-autoscaler", "calico-node-cpva", SYSTEM_PRIORITY,
        NOBODY, 1, {}, {},
    ),
    "node-autoscaler", "daemonset", node.NAME, node.NAME, _NODE_REQUESTS,
)  # fmt: skip
_HEALTHZ: Final = http_probe("/healthz", 8080, initialDelaySeconds=10, periodSeconds=30)
_CONFIG: Final = "/etc/config"


def scaling_objects(values: Values, images: Images) -> list[JsonObject]:
    """Return the objects that scale Calico, in the mode that the Shoot allows."""
    objects = horizontal(images) if values.typha else []
    if values.auto_scaling == "cluster-proportional":
        if values.typha:
            objects += vertical(TYPHA, images)
        objects += vertical(NODE, images)
    elif values.auto_scaling == "vpa":
        objects += _vertical_pod_autoscalers(values)
    return objects


def horizontal(images: Images) -> list[JsonObject]:
    """Return the objects that set the replicas of Typha by the number of nodes."""
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
    config = manifest(
        "v1", "ConfigMap", TYPHA_HORIZONTAL, namespace=KUBE_SYSTEM, data={"ladder": ladder}
    )
    container: JsonObject = {
        "image": images("calico-cpa"),
        "command": list(arguments),
        "livenessProbe": _HEALTHZ,
    }
    return [
        config,
        deployment(_HORIZONTAL, container, config),
        *identity(_HORIZONTAL.account, rules),
    ]


def vertical(growth: Growth, images: Images) -> list[JsonObject]:
    """Return the objects that set the requests of one container by the number of nodes."""
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
    config = manifest(
        "v1", "ConfigMap", scaler.name, namespace=KUBE_SYSTEM, data={growth.key: content}
    )
    container: JsonObject = {
        "image": images("calico-cpva"),
        "command": list(arguments),
        "volumeMounts": [mount("config", _CONFIG)],
    }
    return [
        config,
        deployment(scaler, container, config, volumes=[config_map_volume("config", scaler.name)]),
        *identity(scaler.account, rules),
    ]


def _vertical_pod_autoscalers(values: Values) -> list[JsonObject]:
    target = target_reference("DaemonSet", node.NAME)
    least = values.resources.get("node", {})
    scalers = [vertical_pod_autoscaler(node.NAME, KUBE_SYSTEM, target, node.NAME, least)]
    if values.typha:
        target = target_reference("Deployment", typha.DEPLOYMENT)
        least = values.resources.get("typha", {})
        scalers.append(vertical_pod_autoscaler(typha.NAME, KUBE_SYSTEM, target, typha.NAME, least))
    return scalers
