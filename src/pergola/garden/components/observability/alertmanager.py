"""Alertmanager: sends the alerts of the garden Prometheus to their receivers (spec 20 §16.8).

It has no configuration of its own: users add AlertmanagerConfigs with the label
`alertmanager=garden`.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    SEED_SCRAPES,
    TO_DNS,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    open_ports,
)
from pergola.garden.components.istio import EXPORTED, refused
from pergola.garden.components.observability.conventions import (
    UNKNOWN_VERSION,
    application,
    exposed,
    host,
    host_credentials,
    managed,
    volume_claim,
)
from pergola.garden.components.observability.prometheus import FROM_SHOOTS
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import (
    disruption_budget,
    manifest,
    requests,
    selector,
    service,
    vertical_pod_autoscaler,
)

NAME: Final = "alertmanager-garden"
LABELS: Final = {"alertmanager": "garden", "component": "alertmanager", "role": "monitoring"}
PORT: Final = 9093

_API: Final = "monitoring.coreos.com/v1"
_IMAGE: Final = "alertmanager"
_SIZE: Final = "1Gi"
_PEERS: Final = "networking.resources.gardener.cloud/to-alertmanager-operated"
_POD_LABELS: Final = {
    **LABELS,
    **application(NAME),
    **TO_DNS,
    **TO_PUBLIC_NETWORKS,
    **TO_PRIVATE_NETWORKS,
    f"{_PEERS}-tcp-mesh-tcp": "allowed",
    f"{_PEERS}-udp-mesh-udp": "allowed",
}


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the host."""
    yield from host_credentials(landscape, NAME, NAME)


def render(landscape: Landscape) -> Rendered:
    """Return Alertmanager and its host."""
    objects = (
        _alertmanager(landscape),
        _service(),
        disruption_budget(NAME, NAMESPACE, LABELS),
        _autoscaler(),
        *exposed(landscape, NAME, NAME, LABELS, PORT, refused("reload-endpoint", "/-/reload")),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _alertmanager(landscape: Landscape) -> JsonObject:
    return manifest(
        _API,
        "Alertmanager",
        "garden",
        namespace=NAMESPACE,
        labels=LABELS,
        spec={
            "alertmanagerConfigMatcherStrategy": {"type": "None"},
            "alertmanagerConfigNamespaceSelector": {},
            "alertmanagerConfigSelector": selector({"alertmanager": "garden"}),
            "externalUrl": f"https://{host(landscape, NAME)}",
            "forceEnableClusterMode": True,
            "image": landscape.image(_IMAGE),
            "imagePullPolicy": "IfNotPresent",
            "logLevel": "info",
            "podMetadata": {"labels": _POD_LABELS},
            "priorityClassName": P100,
            "replicas": 2,
            "resources": requests(memory="20Mi"),
            "securityContext": {"runAsUser": 0},
            "storage": {"volumeClaimTemplate": volume_claim(landscape, "alertmanager-db", _SIZE)},
            "version": landscape.image_version(_IMAGE) or UNKNOWN_VERSION,
        },
    )


def _service() -> JsonObject:
    annotations = {
        **EXPORTED,
        **open_ports(GARDEN_SCRAPES, PORT),
        **open_ports(SEED_SCRAPES, PORT),
        **FROM_SHOOTS,
    }
    port = {"name": "metrics", "port": PORT}
    return service(NAME, NAMESPACE, LABELS, port, labels=LABELS, annotations=annotations)


def _autoscaler() -> JsonObject:
    return vertical_pod_autoscaler(
        NAME,
        NAMESPACE,
        {"apiVersion": _API, "kind": "Alertmanager", "name": "garden"},
        "alertmanager",
        {"memory": "20Mi"},
        most={"memory": "200Mi"},
        resources=["memory"],
        labels={**LABELS, **application(NAME)},
    )


ALERTMANAGER: Final = Component(
    name=NAME,
    deploy="Deploying Alertmanager",
    wait="Waiting until Alertmanager is ready",
    after=(task_names.INGRESS_PASSWORD,),
    credentials=credentials,
    render=render,
)
