"""What the programs of Gardener have in common (spec 20 §16).

They run in the runtime cluster and work on the virtual one: each has a Deployment with the shared
kubeconfig and a token of its own, what surrounds it, and permissions in the virtual cluster. So
each has two ManagedResources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.bundle import make_unique
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
from pergola.operator.components import monitoring
from pergola.operator.components.component import Identity, Managed, Removable, Target
from pergola.operator.components.conventions import (
    GARDEN_SCRAPES,
    NON_ROOT,
    TO_DNS,
    WEBHOOK_TARGETS,
    nearest_first,
    open_ports,
)
from pergola.operator.components.virtual_access import (
    TO_VIRTUAL_API_SERVER,
    access_secret_name,
    kubeconfig_mount,
    kubeconfig_volume,
)
from pergola.operator.garden.landscape import NAMESPACE, Landscape

CONDITION: Final = "VirtualComponentsHealthy"
CONTROLLER: Final = "controller"
"""Has one replica that works, and one more in a highly available garden."""
SERVER: Final = "server"
"""Has several replicas that serve."""
CLIENT_CONNECTION: Final = {"qps": 100, "burst": 130}
"""How many requests a program may send."""
METRICS: Final = ("rest_client_.+", "controller_runtime_.+", "workqueue_.+", "go_.+")
"""Metrics that controllers have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of Gardener.

    Attributes:
        name: Of its Deployment, Service and container, and of its account in the virtual cluster.
        labels: Of its pods and everything around them.
        priority: Its priority class.
        kind: `CONTROLLER` or `SERVER`; empty if the number of replicas is always the same.
        managed: The beginning of the names of its ManagedResources, if not its name.
        to: Labels of its pods that let them reach more than DNS and the virtual API server.
    """

    name: str
    labels: Mapping[str, str]
    priority: str
    kind: str = ""
    managed: str = ""
    condition: str = CONDITION
    to: Mapping[str, str] = field(default_factory=dict)

    def account(self) -> JsonObject:
        """Return its account in the virtual cluster, as the subject of bindings."""
        return account(self.name, KUBE_SYSTEM)

    def runtime(self, *objects: JsonObject, rolled_out: bool = False) -> Managed:
        """Return the ManagedResource of the runtime cluster."""
        return Managed(
            name=self._managed_names[0],
            objects=objects,
            condition=self.condition,
            rolled_out=rolled_out,
        )

    def virtual(self, *objects: JsonObject) -> Managed:
        """Return the ManagedResource of the virtual cluster."""
        return Managed(
            name=self._managed_names[1],
            objects=objects,
            target=Target.VIRTUAL,
            condition=self.condition,
        )

    def removable(self) -> Removable:
        """Return what to remove of it; what else it had is collected as garbage."""
        access = Identity(SECRET, Key(NAMESPACE, access_secret_name(self.name)))
        managed = tuple(Key(NAMESPACE, name) for name in self._managed_names)
        return Removable(managed=managed, direct=(access,))

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
    """Return the Deployment: one replica, unless a webhook or the spec says otherwise.

    Args:
        container: Without what all containers have: name, pull policy, privileges, kubeconfig.
        annotations: Of the pods.
        pod: More fields of the pod spec, which win.
        spec: More fields of the Deployment, which win.
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
        name: Without the hash of the content, which is appended.
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
        name: Of the port of the webhooks, which is 443 outside.
        port: The port of the pods that serves webhooks.
        metrics: The port of the pods that serves metrics.
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
        metrics: Regular expressions for the names of the metrics to keep.
    """
    scraped = monitoring.endpoint("metrics", metrics=monitoring.kept_metrics(*metrics))
    return monitoring.service_monitor(monitoring.GARDEN, program.name, program.labels, scraped)


def budget(program: Program) -> JsonObject:
    """Return the budget of one evicted pod at a time."""
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
