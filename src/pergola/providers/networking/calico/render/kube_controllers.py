"""`calico-kube-controllers`: tidies up Calico's objects when nodes and Services go."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.networking.calico.render.compose import (
    EGRESS,
    GARDENER,
    NO_ESCALATION,
    RUNTIME_SECCOMP,
    SYSTEM_COMPONENT,
    Images,
    disruption_budget,
    env,
    obj,
    requests,
)
from pergola.providers.networking.calico.render.vertical_pod_autoscalers import (
    vertical_pod_autoscaler,
)
from pergola.providers.networking.calico.values import Values

NAME: Final = "calico-kube-controllers"
_LABELS: Final = {"k8s-app": NAME}
_USER: Final = 999


def controller_objects(values: Values, images: Images) -> list[JsonObject]:
    """Its objects; none if nothing is routed by Calico."""
    if not values.kube_controllers:
        return []
    return [
        _deployment(images),
        disruption_budget(NAME, NAME),
        *([vertical_pod_autoscaler(NAME, "Deployment", NAME, {})] if values.vpa else []),
    ]


def _deployment(images: Images) -> JsonObject:
    labels = {**_LABELS, **SYSTEM_COMPONENT}
    spec: JsonObject = {
        "replicas": 1,
        "revisionHistoryLimit": 2,
        "strategy": {"type": "Recreate"},  # two of them would tidy up against each other
        "selector": {"matchLabels": dict(_LABELS)},
        "template": {
            "metadata": {"labels": {**labels, **GARDENER, **EGRESS}},
            "spec": _pod(images),
        },
    }
    return obj("apps/v1", "Deployment", NAME, labels=labels, spec=spec)


def _pod(images: Images) -> JsonObject:
    return {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "dnsPolicy": "Default",
        "tolerations": [{"effect": "NoSchedule", "operator": "Exists"}],
        "securityContext": RUNTIME_SECCOMP,
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
        "securityContext": {**NO_ESCALATION, "runAsNonRoot": True, "runAsUser": _USER},
    }


def _probe(what: str, **more: int) -> JsonObject:
    return {
        "exec": {"command": ["/usr/bin/check-status", what]},
        "periodSeconds": 10,
        "timeoutSeconds": 10,
        **more,
    }
