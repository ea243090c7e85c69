"""VictoriaLogs: stores the logs of the garden, as the successor of Vali (spec 20 §16.8)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import TO_DNS, TO_RUNTIME_API_SERVER
from pergola.garden.components.observability.conventions import (
    application,
    managed,
    volume_claim,
)
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import manifest, requests

NAME: Final = "victoria-logs"
GATE: Final = "VictoriaLogsBackend"
SERVICE: Final = "logging-vl"
PORT: Final = 9428

_LABELS: Final = {
    "app": NAME,
    "role": "observability",
    "gardener.cloud/role": "observability",
    **application(NAME),
    **TO_DNS,
    **TO_RUNTIME_API_SERVER,
}
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
    return Rendered(managed=(managed(NAME, _store(landscape)),))


def _store(landscape: Landscape) -> JsonObject:
    repository, _, tag = landscape.image(NAME).rpartition(":")
    return manifest(
        "operator.victoriametrics.com/v1",
        "VLSingle",
        NAME,
        namespace=NAMESPACE,
        labels=_LABELS,
        spec={
            "image": {"repository": repository, "tag": tag, "pullPolicy": "IfNotPresent"},
            "port": str(PORT),
            "replicaCount": 1,
            "priorityClassName": P100,
            "podMetadata": {"labels": _LABELS},
            "resources": requests(cpu="10m", memory="100Mi"),
            "retentionPeriod": _RETENTION,
            "extraArgs": {"retention.maxDiskUsagePercent": _FULL},
            "storage": volume_claim(landscape, NAME, _SIZE)["spec"],
            "serviceSpec": {"metadata": {"name": SERVICE}, "spec": {"type": "ClusterIP"}},
            "disableSelfServiceScrape": True,
            "disableAutomountServiceAccountToken": True,
        },
    )


VICTORIA_LOGS: Final = Component(
    name=NAME, deploy="Deploying VictoriaLogs", absent=absent, render=render
)
