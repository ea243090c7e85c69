"""The objects that both resource managers consist of (spec 20 §13, §14)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.garden.components import authorities, monitoring
from pergola.garden.components.conventions import TO_DNS, TO_RUNTIME_API_SERVER
from pergola.garden.components.resource_manager.configuration import (
    CERTIFICATES,
    HEALTH_PORT,
    METRICS_PORT,
    WEBHOOK_PORT,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.kube.yaml import dump
from pergola.manifests import (
    config_map_volume,
    disruption_budget,
    http_probe,
    manifest,
    mount,
    non_root,
    port,
    requests,
    restricted,
    selector,
    service,
    service_account,
    service_port,
    target_reference,
    token_mount,
    token_volume,
    vertical_pod_autoscaler,
)

IMAGE: Final = "gardener-resource-manager"
CONTAINER: Final = "gardener-resource-manager"
SERVER_PORT: Final = 443

_ROLE: Final = "gardener.cloud/role"
_CONFIG_VOLUME: Final = "config"
_CONFIG_PATH: Final = "/etc/gardener-resource-manager-config"
_CONFIG_FILE: Final = "config.yaml"
_TLS_VOLUME: Final = "tls"
_READABLE: Final = 0o640
_USER: Final = 65532
_SKIPPED: Final = {
    "projected-token-mount.resources.gardener.cloud/skip": "true",
    "system-components-config.resources.gardener.cloud/skip": "true",
}
"""Opts out of the webhooks that these pods serve themselves, so that they can start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One of the two resource managers.

    Attributes:
        name: The name of its objects.
        role: The value of the label `gardener.cloud/role` of its pods.
        labels: The labels of its objects.
        prometheus: The Prometheus that scrapes it.
        priority: The priority class of its pods.
        high_availability: The label that makes a webhook spread the pods of the Deployment.
        opened: The annotations that open ports of the Service.
        destinations: Labels that let its pods reach extra destinations.
    """

    name: str
    role: str
    labels: Mapping[str, str]
    prometheus: str
    priority: str
    high_availability: Mapping[str, str]
    opened: Mapping[str, str]
    destinations: Mapping[str, str] = field(default_factory=dict)

    @property
    def app(self) -> dict[str, str]:
        """The label that selects its pods."""
        return {"app": self.name}

    @property
    def pods(self) -> dict[str, str]:
        """The labels that select its pods for topology spread and disruption budget."""
        return {**self.app, _ROLE: self.role}

    @property
    def certificate(self) -> str:
        """The name of the credential with its server certificate."""
        return f"{self.name}-server"


def certificate(instance: Instance) -> Credential:
    """Return the certificate of the webhook server."""
    hosts = authorities.service_hosts(instance.name, NAMESPACE)
    return authorities.runtime_server(instance.certificate, *hosts)


def objects(
    instance: Instance,
    landscape: Landscape,
    config: JsonObject,
    *,
    kubeconfig: tuple[JsonObject, JsonObject] | None = None,
    spread: list[JsonObject] | None = None,
) -> tuple[JsonObject, ...]:
    """Return all objects except permissions.

    Args:
        config: The content of the configuration file.
        kubeconfig: The volume with the kubeconfig of the other cluster, and its mount.
        spread: Topology spread constraints, unless a webhook sets them.
    """
    name, labels = instance.name, instance.labels
    mounted = make_unique(
        manifest("v1", "ConfigMap", name, namespace=NAMESPACE, data={_CONFIG_FILE: dump(config)})
    )
    pod = _pod(instance, landscape, name_of(mounted))
    if kubeconfig:
        volume, place = kubeconfig
        pod["volumes"].append(volume)
        pod["containers"][0]["volumeMounts"].append(place)
    if spread:
        pod["topologySpreadConstraints"] = spread
    return (
        service_account(name, NAMESPACE, labels),
        mounted,
        _service(instance),
        _deployment(instance, pod),
        disruption_budget(name, NAMESPACE, instance.pods, labels),
        vertical_pod_autoscaler(
            f"{name}-vpa",
            NAMESPACE,
            target_reference("Deployment", name),
            CONTAINER,
            labels=labels,
        ),
        monitoring.service_monitor(
            instance.prometheus,
            name,
            instance.app,
            monitoring.endpoint("metrics", targets=[monitoring.SERVICE_LABELS]),
        ),
    )


def _service(instance: Instance) -> JsonObject:
    return service(
        instance.name,
        NAMESPACE,
        instance.app,
        service_port("metrics", METRICS_PORT),
        service_port("health", HEALTH_PORT),
        service_port("server", SERVER_PORT, WEBHOOK_PORT),
        labels=instance.labels,
        annotations=instance.opened,
    )


def _deployment(instance: Instance, pod: JsonObject) -> JsonObject:
    labels = {
        **instance.pods,
        **TO_DNS,
        **TO_RUNTIME_API_SERVER,
        **instance.destinations,
        **_SKIPPED,
    }
    return manifest(
        "apps/v1",
        "Deployment",
        instance.name,
        namespace=NAMESPACE,
        labels={**instance.labels, **instance.high_availability},
        spec={
            "replicas": 2,
            "revisionHistoryLimit": 2,
            "selector": selector(instance.app),
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    )


def _pod(instance: Instance, landscape: Landscape, config: str) -> JsonObject:
    certificate = landscape.credentials.name(instance.certificate)
    return {
        "priorityClassName": instance.priority,
        "serviceAccountName": instance.name,
        "automountServiceAccountToken": False,
        "securityContext": non_root(_USER, fs_group=True),
        "containers": [_container(landscape)],
        "volumes": [
            token_volume(),
            {
                "name": _TLS_VOLUME,
                "secret": {"secretName": certificate, "defaultMode": _READABLE},
            },
            config_map_volume(_CONFIG_VOLUME, config),
        ],
    }


def _container(landscape: Landscape) -> JsonObject:
    return {
        "name": CONTAINER,
        "image": landscape.image(IMAGE),
        "imagePullPolicy": "IfNotPresent",
        "command": ["pergola", "resource-manager"],
        "args": [f"--config={_CONFIG_PATH}/{_CONFIG_FILE}"],
        "ports": [port("metrics", METRICS_PORT), port("health", HEALTH_PORT)],
        "livenessProbe": http_probe(
            "/healthz",
            HEALTH_PORT,
            failureThreshold=5,
            initialDelaySeconds=30,
            periodSeconds=10,
            successThreshold=1,
            timeoutSeconds=5,
        ),
        "readinessProbe": http_probe(
            "/readyz", HEALTH_PORT, initialDelaySeconds=10, periodSeconds=10
        ),
        "resources": requests(cpu="10m", memory="30M"),
        "securityContext": restricted(),
        "volumeMounts": [
            token_mount(),
            mount(_TLS_VOLUME, CERTIFICATES, readOnly=True),
            mount(_CONFIG_VOLUME, _CONFIG_PATH, readOnly=True),
        ],
    }
