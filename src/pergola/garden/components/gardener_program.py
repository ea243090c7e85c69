"""The objects that all programs of Gardener share (spec 20 §16).

These programs run in the runtime cluster and serve the virtual one. Each has a Deployment with the
shared kubeconfig and its own token, companions such as a Service, and permissions in the virtual
cluster; hence each has two ManagedResources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import Identity, JsonObject, Key, map_at, maps_at
from pergola.bundle import make_unique
from pergola.garden.components import monitoring
from pergola.garden.components.component import Managed, Removable, Target
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    NON_ROOT,
    TO_DNS,
    WEBHOOK_TARGETS,
    nearest_first,
    open_ports,
)
from pergola.garden.components.virtual_access import TO_VIRTUAL_API_SERVER, kubeconfig_volume
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    KUBE_SYSTEM,
    account,
    disruption_budget,
    http_probe,
    manifest,
    selector,
    service,
    service_port,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY
from pergola.manifests.shoot_access import access_secret_name, kubeconfig_mount

CONDITION: Final = "VirtualComponentsHealthy"
CONTROLLER: Final = "controller"
"""A program with one active replica, and a standby in a highly available garden."""
SERVER: Final = "server"
"""A program all of whose replicas serve requests."""
CLIENT_CONNECTION: Final = {"qps": 100, "burst": 130}
"""The client-side rate limits of a program."""
METRICS: Final = ("rest_client_.+", "controller_runtime_.+", "workqueue_.+", "go_.+")
"""Regular expressions for the metrics that all controllers have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of Gardener.

    Attributes:
        name: The name of its Deployment, Service, container and account in the virtual cluster.
        labels: The labels of all its objects; they select its pods.
        priority: Its priority class.
        kind: `CONTROLLER` or `SERVER`; empty if the number of replicas is fixed.
        managed: The prefix of its ManagedResources' names, if it is not `name`.
        condition: The Garden's condition that covers it.
        to: Labels that let its pods reach more than DNS and the virtual API server.
    """

    name: str
    labels: Mapping[str, str]
    priority: str
    kind: str = ""
    managed: str = ""
    condition: str = CONDITION
    to: Mapping[str, str] = field(default_factory=dict)

    def account(self) -> JsonObject:
        """Return its ServiceAccount in the virtual cluster, as the subject of bindings."""
        return account(self.name, KUBE_SYSTEM)

    def runtime(self, *objects: JsonObject, is_awaited: bool = False) -> Managed:
        """Return its ManagedResource with objects of the runtime cluster.

        Args:
            is_awaited: Whether the rollout of its Deployment is awaited.
        """
        return Managed(
            name=self._managed_names[0],
            objects=objects,
            condition=self.condition,
            deployment=self.name if is_awaited else "",
        )

    def virtual(self, *objects: JsonObject) -> Managed:
        """Return its ManagedResource with objects of the virtual cluster."""
        return Managed(
            name=self._managed_names[1],
            objects=objects,
            target=Target.VIRTUAL,
            condition=self.condition,
        )

    def removable(self) -> Removable:
        """Return the objects to remove with it; the garbage collector deletes the rest.

        Its registrations in the virtual cluster come first. If an operator ends in between, they
        must not outlive the program: requests that need it would fail until they are gone, among
        them those that tell whether the Garden may be deleted.
        """
        access = Identity(SECRET, Key(NAMESPACE, access_secret_name(self.name)))
        runtime, virtual = (Key(NAMESPACE, name) for name in self._managed_names)
        return Removable(managed=(virtual, runtime), direct=(access,))

    @property
    def _managed_names(self) -> tuple[str, str]:
        prefix = self.managed or self.name
        return f"{prefix}-runtime", f"{prefix}-virtual"


def gardener_labels(role: str) -> dict[str, str]:
    """Return the labels of a program of Gardener."""
    return {"app": "gardener", "role": role}


def deployment(
    program: Program,
    landscape: Landscape,
    container: JsonObject,
    volumes: Sequence[JsonObject] = (),
    *,
    annotations: Mapping[str, str] | None = None,
    pod: JsonObject | None = None,
    **spec: object,
) -> JsonObject:
    """Return the Deployment: one replica, unless a webhook or `spec` sets another number.

    Args:
        container: The container without the common fields: name, pull policy, privileges and the
            kubeconfig mount.
        annotations: The annotations of the pods.
        pod: Fields of the pod spec that override the defaults.
        spec: Fields of the Deployment's spec that override the defaults.
    """
    replicas = {HIGH_AVAILABILITY: program.kind} if program.kind else {}
    metadata: JsonObject = {
        "labels": {**program.labels, **TO_DNS, **TO_VIRTUAL_API_SERVER, **program.to}
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    pod_spec = _pod(program, landscape, container, volumes)
    return manifest(
        "apps/v1",
        "Deployment",
        program.name,
        namespace=NAMESPACE,
        labels={**program.labels, **replicas},
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(program.labels),
            **spec,
            "template": {"metadata": metadata, "spec": {**pod_spec, **(pod or {})}},
        },
    )


def _pod(
    program: Program, landscape: Landscape, container: JsonObject, volumes: Sequence[JsonObject]
) -> JsonObject:
    mounts = [*maps_at(container, "volumeMounts"), kubeconfig_mount()]
    security = {"allowPrivilegeEscalation": False, **map_at(container, "securityContext")}
    common: JsonObject = {
        "name": program.name,
        "imagePullPolicy": "IfNotPresent",
        **container,
        "securityContext": security,
        "volumeMounts": mounts,
    }
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": program.priority,
        "securityContext": NON_ROOT,
        "containers": [common],
        "volumes": [*volumes, kubeconfig_volume(landscape, program.name)],
    }


def config_map(program: Program, name: str, key: str, content: JsonObject) -> JsonObject:
    """Return the immutable ConfigMap with its configuration file.

    Args:
        name: The name before the hash of the content is appended.
        key: The name of the file.
    """
    return make_unique(
        manifest(
            "v1",
            "ConfigMap",
            name,
            namespace=NAMESPACE,
            labels=program.labels,
            data={key: dump(content)},
        )
    )


def probes(port: int, *, delay: int) -> JsonObject:
    """Return the liveness and readiness probes of its container.

    Args:
        delay: Seconds before the first check of liveness.
    """
    return {
        "livenessProbe": http_probe("/healthz", port, initialDelaySeconds=delay, timeoutSeconds=5),
        "readinessProbe": http_probe("/readyz", port, initialDelaySeconds=10, timeoutSeconds=5),
    }


def metrics_service(program: Program, port: int) -> JsonObject:
    """Return the Service of a program that serves only metrics."""
    return service(
        program.name,
        NAMESPACE,
        program.labels,
        service_port("metrics", port),
        labels=program.labels,
        annotations=open_ports(GARDEN_SCRAPES, port),
    )


def webhook_service(
    program: Program, landscape: Landscape, name: str, port: int, metrics: int
) -> JsonObject:
    """Return the Service of a program that serves webhooks and metrics.

    Args:
        name: The name of port 443, which leads to the webhooks.
        port: The pods' port for webhooks.
        metrics: The pods' port for metrics.
    """
    return service(
        program.name,
        NAMESPACE,
        program.labels,
        service_port(name, 443, port),
        service_port("metrics", metrics),
        labels=program.labels,
        annotations={**open_ports(GARDEN_SCRAPES, metrics), **open_ports(WEBHOOK_TARGETS, port)},
        **nearest_first(landscape),
    )


def service_monitor(program: Program, *metrics: str) -> JsonObject:
    """Return the ServiceMonitor of its Service.

    Args:
        metrics: Regular expressions of the metrics to keep.
    """
    scraped = monitoring.endpoint("metrics", metrics=monitoring.kept_metrics(*metrics))
    return monitoring.service_monitor(monitoring.GARDEN, program.name, program.labels, scraped)


def budget(program: Program) -> JsonObject:
    """Return the PodDisruptionBudget, which allows one eviction at a time."""
    return disruption_budget(program.name, NAMESPACE, program.labels)


def autoscaler(
    program: Program, most: Mapping[str, int | str] | None = None, **least: int | str
) -> JsonObject:
    """Return the autoscaler of its container."""
    return vertical_pod_autoscaler(
        f"{program.name}-vpa",
        NAMESPACE,
        target_reference("Deployment", program.name),
        program.name,
        least,
        most=most,
        labels=program.labels,
    )
