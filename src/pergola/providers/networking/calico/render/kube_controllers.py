"""`calico-kube-controllers`: cleans up Calico's objects after nodes and Services."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    RUNTIME_DEFAULT,
    SYSTEM_PRIORITY,
    Images,
    disruption_budget,
    env,
    exec_probe,
    manifest,
    requests,
    restricted,
    selector,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import SYSTEM_COMPONENT
from pergola.providers.networking.calico.render.conventions import EGRESS, GARDENER
from pergola.providers.networking.calico.values import Values

NAME: Final = "calico-kube-controllers"
_LABELS: Final = {"k8s-app": NAME}
_USER: Final = 999


def controller_objects(values: Values, images: Images) -> list[JsonObject]:
    """Return its objects; none if Calico routes nothing."""
    if not values.kube_controllers:
        return []
    return [
        _deployment(images),
        disruption_budget(NAME, KUBE_SYSTEM, _LABELS),
        *([_autoscaler()] if values.vpa else []),
    ]


def _autoscaler() -> JsonObject:
    return vertical_pod_autoscaler(NAME, KUBE_SYSTEM, target_reference("Deployment", NAME), NAME)


def _deployment(images: Images) -> JsonObject:
    labels = {**_LABELS, **SYSTEM_COMPONENT}
    spec: JsonObject = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "strategy": {"type": "Recreate"},  # two replicas would interfere with each other
        "selector": selector(_LABELS),
        "template": {
            "metadata": {"labels": {**labels, **GARDENER, **EGRESS}},
            "spec": _pod(images),
        },
    }
    return manifest("apps/v1", "Deployment", NAME, namespace=KUBE_SYSTEM, labels=labels, spec=spec)


def _pod(images: Images) -> JsonObject:
    return {
        "priorityClassName": SYSTEM_PRIORITY,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "dnsPolicy": "Default",
        "tolerations": [{"effect": "NoSchedule", "operator": "Exists"}],
        "securityContext": {"seccompProfile": RUNTIME_DEFAULT},
        "containers": [_container(images)],
    }


def _container(images: Images) -> JsonObject:
    return {
        "name": NAME,
        "image": images("calico-kube-controllers"),
        "env": env(ENABLED_CONTROLLERS="node,loadbalancer", DATASTORE_TYPE="kubernetes"),
        "livenessProbe": _probe("-l", initialDelaySeconds=10, failureThreshold=6),
        "readinessProbe": _probe("-r"),
        "resources": requests(cpu="10m", memory="50Mi"),
        "securityContext": {
            **restricted(read_only_root=False),
            "runAsNonRoot": True,
            "runAsUser": _USER,
        },
    }


def _probe(what: str, **more: int) -> JsonObject:
    return exec_probe("/usr/bin/check-status", what, periodSeconds=10, timeoutSeconds=10, **more)
