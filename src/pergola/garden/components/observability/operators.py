"""Operators in the garden: one container each, with access to the runtime cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pergola.api.objects import JsonObject
from pergola.garden.components.conventions import TO_DNS, TO_RUNTIME_API_SERVER
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    account,
    cluster_role,
    manifest,
    selector,
    service_account,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator.

    Attributes:
        name: The name of its image, its container and, unless stated otherwise, its objects.
        labels: The labels of all its objects; they also select its pods.
        rules: Its permissions in all namespaces.
        container: Fields of its container besides name, image and pull policy.
        pod: Fields of its pods besides containers, priority and account.
        least_memory: The lower limit of the autoscaler.
        autoscaled: The resources that the autoscaler controls; CPU and memory if empty.
        scaler_labels: The labels of the autoscaler, if they are not `labels`.
        is_spread: Whether a webhook sets its replicas and spreads them.
        role: The name of the ClusterRole, if it is not `name`.
    """

    name: str
    labels: Mapping[str, str]
    rules: Sequence[JsonObject]
    container: JsonObject
    pod: JsonObject = field(default_factory=dict)
    least_memory: str
    autoscaled: Sequence[str] = ()
    scaler_labels: Mapping[str, str] | None = None
    is_spread: bool = False
    role: str = ""

    @property
    def account(self) -> JsonObject:
        """The ServiceAccount, as the subject of bindings."""
        return account(self.name, NAMESPACE)


def operator_objects(operator: Operator, landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the deployment of an operator, its permissions and its autoscaler."""
    autoscaler = vertical_pod_autoscaler(
        operator.name,
        NAMESPACE,
        target_reference("Deployment", operator.name),
        operator.name,
        {"memory": operator.least_memory},
        resources=operator.autoscaled,
        labels=operator.labels if operator.scaler_labels is None else operator.scaler_labels,
    )
    return (
        service_account(operator.name, NAMESPACE, operator.labels),
        *_permissions(operator),
        _deployment(operator, landscape),
        autoscaler,
    )


def _permissions(operator: Operator) -> list[JsonObject]:
    name = operator.role or operator.name
    permissions = cluster_role(name, operator.rules, operator.account, labels=operator.labels)
    binding = permissions[1]
    binding["metadata"] = {"name": operator.name, "labels": dict(operator.labels)}
    return permissions


def _deployment(operator: Operator, landscape: Landscape) -> JsonObject:
    spread = {HIGH_AVAILABILITY: "controller"} if operator.is_spread else {}
    pod_labels = {**operator.labels, **TO_DNS, **TO_RUNTIME_API_SERVER}
    return manifest(
        "apps/v1",
        "Deployment",
        operator.name,
        namespace=NAMESPACE,
        labels={**operator.labels, **spread},
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(operator.labels),
            "template": {"metadata": {"labels": pod_labels}, "spec": _pod(operator, landscape)},
        },
    )


def _pod(operator: Operator, landscape: Landscape) -> JsonObject:
    container: JsonObject = {
        "name": operator.name,
        "image": landscape.image(operator.name),
        "imagePullPolicy": "IfNotPresent",
        **operator.container,
    }
    return {
        "priorityClassName": P100,
        "serviceAccountName": operator.name,
        **operator.pod,
        "containers": [container],
    }
