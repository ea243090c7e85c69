"""VictoriaLogs: stores the logs of the garden, as the successor of Vali (spec 20 §16.8)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import volume_autoscaling
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import GARDEN_SCRAPES, open_ports
from pergola.garden.components.monitoring import (
    GARDEN,
    SERVICE_LABELS,
    endpoint,
    job,
    rule_file,
    service_monitor,
)
from pergola.garden.components.observability.conventions import (
    application,
    managed,
    volume_claim,
)
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import manifest, requests, target_reference, vertical_pod_autoscaler

NAME: Final = "victoria-logs"
GATE: Final = "VictoriaLogsBackend"
SERVICE: Final = "logging-vl"
PORT: Final = 9428

_LABELS: Final = {
    "app": NAME,
    "role": "observability",
    "gardener.cloud/role": "observability",
    **application(NAME),
}
_CONTAINER: Final = "vlsingle"
_ENLARGE: Final = "operator.victoriametrics.com/pvc-allow-volume-expansion"
_SIZE: Final = "30Gi"
_RETENTION: Final = "15d"
_FULL: Final = "85"
"""The percentage of disk usage from which the oldest logs are dropped."""


def absent(landscape: Landscape) -> str | None:
    """Return why the Garden does not store logs in VictoriaLogs, or None if it does."""
    if landscape.feature_gates.get(GATE, False):
        return None
    return f"the feature gate {GATE} is off"


def render(landscape: Landscape) -> Rendered:
    """Return the store, for which victoria-operator creates a workload and a Service."""
    objects = (
        _store(landscape),
        vertical_pod_autoscaler(f"{NAME}-vpa", NAMESPACE, _workload(), _CONTAINER, labels=_LABELS),
        _service_monitor(),
        rule_file(GARDEN, NAME),
        *_volume_autoscaler(landscape),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _volume_autoscaler(landscape: Landscape) -> Iterator[JsonObject]:
    if volume_autoscaling.absent(landscape) is None:
        yield volume_autoscaling.volume_autoscaler(NAME, _workload(), _LABELS, step="2Gi")


def _workload() -> JsonObject:
    """Return the Deployment that victoria-operator creates."""
    return target_reference("Deployment", f"{_CONTAINER}-{NAME}")


def _service_monitor() -> JsonObject:
    services = {
        "app.kubernetes.io/component": "monitoring",
        "app.kubernetes.io/instance": NAME,
        "app.kubernetes.io/name": _CONTAINER,
        "managed-by": "vm-operator",
    }
    found = service_monitor(
        GARDEN, NAME, services, endpoint("http", targets=[job(NAME), SERVICE_LABELS])
    )
    other = {"key": "operator.victoriametrics.com/additional-service", "operator": "DoesNotExist"}
    found["spec"]["selector"]["matchExpressions"] = [other]
    return found


def _store(landscape: Landscape) -> JsonObject:
    repository, _, tag = landscape.image(NAME).rpartition(":")
    return manifest(
        "operator.victoriametrics.com/v1",
        "VLSingle",
        NAME,
        namespace=NAMESPACE,
        spec={
            "image": {"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"},
            "port": str(PORT),
            "replicaCount": 1,
            "priorityClassName": P100,
            "podMetadata": {"labels": _LABELS},
            "resources": requests(cpu="10m", memory="100M"),
            "retentionPeriod": _RETENTION,
            "extraArgs": {"retention.maxDiskUsagePercent": _FULL},
            "storage": volume_claim(landscape, NAME, _SIZE)["spec"],
            "serviceSpec": {"metadata": {"name": SERVICE}},
            "managedMetadata": {"annotations": open_ports(GARDEN_SCRAPES, PORT)},
            # pvc-autoscaler enlarges the volume.
            "storageMetadata": {"annotations": {_ENLARGE: "false"}},
            "useDefaultResources": False,
            "useStrictSecurity": True,
            "disableSelfServiceScrape": True,
            "disableAutomountServiceAccountToken": True,
        },
    )


VICTORIA_LOGS: Final = Component(
    name=NAME, deploy="Deploying VictoriaLogs", absent=absent, render=render
)
