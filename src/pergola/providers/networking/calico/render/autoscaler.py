"""Deploy a program that scales one workload by the number of nodes."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    RUNTIME_DEFAULT,
    account,
    cluster_role,
    manifest,
    requests,
    restricted,
    role,
    rule,
    selector,
    service_account,
)
from pergola.providers.networking.calico.render.config_map import checksum
from pergola.providers.networking.calico.render.conventions import EGRESS

NOBODY: Final = 65534
RECREATED: Final = {marks.DELETE_ON_INVALID_UPDATE: "true"}


class Autoscaler(NamedTuple):
    """The Deployment of such a program.

    Attributes:
        app: the label `k8s-app` of its pods, which is immutable.
        account: its ServiceAccount; its roles and bindings have the same name.
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


def config_map(name: str, data: Mapping[str, str]) -> JsonObject:
    """Return the settings of the program."""
    return manifest("v1", "ConfigMap", name, namespace=KUBE_SYSTEM, data=dict(data))


def identity(name: str, rules: Sequence[JsonObject]) -> list[JsonObject]:
    """Return an account that may read nodes, and use the given rules in kube-system."""
    nodes = [rule("", ["nodes"], ["get", "list", "watch"])]
    return [
        service_account(name, KUBE_SYSTEM),
        *cluster_role(name, nodes, account(name, KUBE_SYSTEM)),
        *role(name, KUBE_SYSTEM, rules, account(name, KUBE_SYSTEM)),
    ]


def deployment(
    scaler: Autoscaler, container: JsonObject, config: JsonObject, **pod: object
) -> JsonObject:
    """Return the Deployment; a change of its ConfigMap creates a new pod."""
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
        "selector": selector(own),
        "template": template,
    }
    return manifest(
        "apps/v1",
        "Deployment",
        scaler.name,
        namespace=KUBE_SYSTEM,
        labels=own,
        annotations=scaler.annotations,
        spec=spec,
    )


def _pod(scaler: Autoscaler, container: JsonObject) -> JsonObject:
    return {
        "priorityClassName": scaler.priority,
        "serviceAccountName": scaler.account,
        "automountServiceAccountToken": True,
        "dnsPolicy": "Default",
        "securityContext": {
            "seccompProfile": RUNTIME_DEFAULT,
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
                "securityContext": restricted(read_only_root=False),
            }
        ],
    }
