"""The garden Prometheus and its access to the virtual cluster."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.component import Component, Rendered, Target
from pergola.garden.components.conventions import TO_PRIVATE_NETWORKS, TO_PUBLIC_NETWORKS
from pergola.garden.components.monitoring import GARDEN, drop, replace
from pergola.garden.components.observability.alertmanager import NAME as ALERTMANAGER
from pergola.garden.components.observability.conventions import (
    host,
    host_credentials,
    managed,
)
from pergola.garden.components.observability.prometheus import (
    Prometheus,
    health,
    prometheus_objects,
)
from pergola.garden.components.observability.prometheus_garden.etcd_rules import etcd_rules
from pergola.garden.components.observability.prometheus_garden.garden_rules import garden_rules
from pergola.garden.components.observability.prometheus_garden.metering_rules import (
    metering_rules,
)
from pergola.garden.components.observability.prometheus_garden.scrapes import cadvisor, scrapes
from pergola.garden.components.observability.prometheus_garden.seed_rules import seed_rules
from pergola.garden.components.observability.prometheus_garden.shoot_rules import shoot_rules
from pergola.garden.components.removal import removable
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import KUBE_SYSTEM, account, cluster_role

NAME: Final = "prometheus-garden"
DEPLOY: Final = "Deploying Garden Prometheus"
READY: Final = "Waiting for Garden Prometheus to be ready"

_ROLE: Final = "gardener.cloud:monitoring:prometheus-garden"
_TARGETS: Final = "networking.resources.gardener.cloud/to"
_POD_LABELS: Final = {
    **TO_PUBLIC_NETWORKS,
    **TO_PRIVATE_NETWORKS,
    f"{_TARGETS}-all-garden-scrape-targets": "allowed",
    f"{_TARGETS}-extensions-all-garden-scrape-targets": "allowed",
    f"{_TARGETS}-istio-system-all-seed-scrape-targets": "allowed",
    f"{_TARGETS}-all-istio-ingresses-all-seed-scrape-targets": "allowed",
}


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the host."""
    yield from host_credentials(landscape, NAME, NAME)


def render(landscape: Landscape) -> Rendered:
    """Return the Prometheus, its scrapes and rules, and its role in the virtual cluster."""
    objects = (
        *prometheus_objects(_instance(landscape), landscape),
        *scrapes(landscape),
        *garden_rules(landscape),
        etcd_rules(),
        metering_rules(),
        seed_rules(),
        shoot_rules(),
        health(GARDEN),
    )
    return Rendered(
        managed=(
            managed(NAME, *objects),
            managed(f"{NAME}-target", *_role(), target=Target.VIRTUAL),
        ),
        direct=(access_secret(NAME),),
    )


def _instance(landscape: Landscape) -> Prometheus:
    alertmanager: JsonObject = {
        "name": ALERTMANAGER,
        "port": "metrics",
        "alertRelabelings": [drop("true", "ignoreAlerts"), *_dashboard_urls(landscape)],
    }
    return Prometheus(
        label=GARDEN,
        size="200Gi",
        retention_size="190GB",
        pod_labels=_POD_LABELS,
        spec={
            "retention": "30d",
            "externalLabels": {"landscape": landscape.virtual.gardener.cluster_identity},
            "alerting": {"alertmanagers": [alertmanager]},
        },
        scrapes=[cadvisor()],
    )


def _dashboard_urls(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the relabelings that link each alert to a page of the dashboard about Shoots."""
    dashboard = f"https://{host(landscape, 'dashboard')}/namespace"
    for regex, path in (
        ("(.+);(.+)", "garden-$1/shoots/$2"),
        ("garden;(.+)", "garden/shoots/$1"),
        (";()", "garden/shoots/$1"),
    ):
        yield replace("dashboard_url", f"{dashboard}/{path}", "project", "name", regex=regex)


def _role() -> list[JsonObject]:
    metrics: JsonObject = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    return cluster_role(_ROLE, [metrics], account(NAME, KUBE_SYSTEM))


PROMETHEUS_GARDEN: Final = Component(
    name=NAME,
    deploy=DEPLOY,
    wait=READY,
    after=(
        "Waiting until Gardener API server rolled out",
        "Initializing connection to virtual garden cluster",
        "Generating and replicating global observability ingress password",
    ),
    credentials=credentials,
    render=render,
    removable=removable("Secret shoot-access-prometheus-garden", managed=(NAME, f"{NAME}-target")),
)
