"""The garden Prometheus and its access to the virtual cluster."""

import dataclasses
from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import INGRESS
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.garden.components import task_names
from pergola.garden.components.component import Clusters, Component, Rendered, Target
from pergola.garden.components.conventions import TO_PRIVATE_NETWORKS, TO_PUBLIC_NETWORKS
from pergola.garden.components.gardener_dashboard.settings import hosts as dashboard_hosts
from pergola.garden.components.monitoring import GARDEN, drop, replace, rule_file
from pergola.garden.components.observability.alertmanager import NAME as ALERTMANAGER
from pergola.garden.components.observability.conventions import (
    host_credentials,
    managed,
)
from pergola.garden.components.observability.global_password import password_secret
from pergola.garden.components.observability.prometheus import (
    Prometheus,
    health,
    prometheus_objects,
)
from pergola.garden.components.observability.prometheus_garden.metering_rules import (
    metering_rules,
)
from pergola.garden.components.observability.prometheus_garden.scrapes import cadvisor, scrapes
from pergola.garden.components.removal import removable
from pergola.garden.components.seeds import learn_seeds
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.kube.client import Client
from pergola.manifests import KUBE_SYSTEM, account, cluster_role

NAME: Final = "prometheus-garden"

_ROLE: Final = "gardener.cloud:monitoring:prometheus-garden"
_AGGREGATE: Final = Key(NAMESPACE, "prometheus-aggregate")
_PREFIX: Final = "p-seed."
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
        _rules_of_garden(landscape),
        rule_file(GARDEN, "auditlog"),
        rule_file(GARDEN, "recording"),
        rule_file(GARDEN, "etcd"),
        metering_rules(),
        rule_file(GARDEN, "seed"),
        rule_file(GARDEN, "shoot"),
        health(GARDEN),
    )
    return Rendered(
        managed=(
            managed(NAME, *objects),
            managed(f"{NAME}-target", *_role(), target=Target.VIRTUAL),
        ),
        direct=(access_secret(NAME),),
    )


def _rules_of_garden(landscape: Landscape) -> JsonObject:
    """Return alerts about the garden's components; only some Gardens have a discovery server."""
    has_discovery = landscape.virtual.gardener.discovery_server is not None
    return rule_file(GARDEN, "garden", without=() if has_discovery else ("DiscoveryServerDown",))


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
    dashboard = f"https://{dashboard_hosts(landscape)[0]}/namespace"
    for regex, path in (
        ("(.+);(.+)", "garden-$1/shoots/$2"),
        ("garden;(.+)", "garden/shoots/$1"),
        (";()", "garden/shoots/$1"),
    ):
        yield replace("dashboard_url", f"{dashboard}/{path}", "project", "name", regex=regex)


def _role() -> list[JsonObject]:
    metrics: JsonObject = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    return cluster_role(_ROLE, [metrics], account(NAME, KUBE_SYSTEM))


async def learn(landscape: Landscape, clusters: Clusters) -> Landscape:
    """Learn the Seeds that it reads from, and the Secret with their password.

    Raises:
        OperatorError: Users provide more than one password.
        NotConnected: There is no kubeconfig of the virtual cluster with a token yet.
        KubeError: A cluster refused, or did not answer.
    """
    return dataclasses.replace(
        await learn_seeds(landscape, clusters),
        own_seed_domain=await _own_domain(clusters.client),
        seed_password=await password_secret(landscape, clusters.client),
    )


async def _own_domain(client: Client) -> str:
    """Return the ingress domain of the Seed that is the runtime cluster; empty if none."""
    ingress = await client.find(INGRESS, _AGGREGATE)
    rules = maps_at(ingress or {}, "spec", "rules")
    host = str(rules[0].get("host") or "") if rules else ""
    return host.removeprefix(_PREFIX) if host.startswith(_PREFIX) else ""


PROMETHEUS_GARDEN: Final = Component(
    name=NAME,
    deploy=task_names.GARDEN_PROMETHEUS,
    wait=task_names.GARDEN_PROMETHEUS_READY,
    after=(
        task_names.GARDENER_API_SERVER_READY,
        task_names.CONNECTION,
        task_names.REPLICATION,
    ),
    learn=learn,
    credentials=credentials,
    render=render,
    removable=removable("Secret shoot-access-prometheus-garden", managed=(NAME, f"{NAME}-target")),
)
