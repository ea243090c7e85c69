"""Advice about a problem, if any is known; pure."""

import re
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.health.pod_trouble import Cause, Trouble

_LACKING: Final = re.compile(r"Insufficient ([\w./-]+\w)")


def about_pod(pod: JsonObject, trouble: Trouble) -> str:
    """Return what to do about a failing pod; empty if unknown."""
    key, container = Key.of(pod), trouble.container
    logs = f"kubectl -n {key.namespace} logs {key.name} -c {container}"
    match trouble.cause:
        case Cause.UNSCHEDULABLE:
            return about_scheduling(trouble.problem)
        case Cause.IMAGE:
            return (
                "check that the image exists and that the nodes may pull it; for a component of a "
                "Garden, an image vector in IMAGEVECTOR_OVERWRITE of the operator names another "
                "place"
            )
        case Cause.CONFIG:
            return "create or correct what the message names; the kubelet retries by itself"
        case Cause.MEMORY:
            return f'give container "{container}" more memory, or find out why it needs so much'
        case Cause.COMMAND:
            return f'correct the command of container "{container}", or what the message names'
        case Cause.CRASH:
            return f"read why it ends: {logs}{' --previous' if trouble.has_previous else ''}"
        case Cause.NOT_READY:
            return f"read why its probes fail: {logs}"
        case Cause.FAILED:
            delete = f"kubectl -n {key.namespace} delete pod {key.name}"
            return f"delete it once the reason is gone: {delete}"
    return ""


def about_scheduling(message: str) -> str:
    """Return what to do about a pod that fits no node, from the scheduler's message."""
    lacking = sorted(set(_LACKING.findall(message)))
    if lacking:
        return f"add nodes, or free {' and '.join(lacking)} on the existing ones"
    if "no nodes available" in message:
        return "add nodes to the cluster"
    if "persistentvolumeclaim" in message.lower():
        return "see why its PersistentVolumeClaim is not bound"
    if "node affinity" in message or "node selector" in message:
        return "label nodes as the pod selects them, or correct what it selects"
    if "taint" in message:
        return "remove the taint of a node, or add a node without it"
    return ""


def about_creation(message: str) -> str:
    """Return what to do about pods that cannot be created, from the API server's message."""
    if "exceeded quota" in message:
        return "raise the ResourceQuota that the message names, or free some of it"
    if "serviceaccount" in message.lower() and "not found" in message:
        return "create the ServiceAccount that the message names"
    if "violates PodSecurity" in message:
        return "set the label pod-security.kubernetes.io/enforce=privileged of the namespace"
    if "webhook" in message:
        return "repair the webhook that the message names, or remove its configuration"
    if "priority class" in message.lower():
        return "create the PriorityClass that the message names"
    return ""


def about_claim(claim: JsonObject, event: str) -> str:
    """Return what to do about a PersistentVolumeClaim that is not bound."""
    name = (claim.get("spec") or {}).get("storageClassName")
    if "not found" in event:
        return f"create StorageClass {name}, or have the claim name another one"
    if not name:
        return "mark a StorageClass as the default one, or have the claim name one"
    return f"check that the provisioner of StorageClass {name} runs"


WRITE_AGAIN: Final = (
    "have the operator write it again: kubectl annotate garden --all --overwrite "
    "gardener.cloud/operation=reconcile"
)
"""Advice about a ManagedResource whose Secret is missing."""

NO_REPLICAS: Final = "scale it up: kubectl -n {namespace} scale deployment {name} --replicas=1"
"""Advice about a Deployment that must run, but has no replicas."""

NO_ADDRESS: Final = (
    "check that the cluster has a controller for load balancers, and that it accepts the "
    "annotations in spec.runtimeCluster.settings.loadBalancerServices"
)
"""Advice about a Service whose load balancer has no address."""
