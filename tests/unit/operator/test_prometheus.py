"""The garden Prometheus, the long-term Prometheus and Alertmanager (spec 20 §16.8)."""

import base64
from collections.abc import Iterable
from typing import Any

import pytest

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.garden.components.component import Component
from pergola.garden.components.observability.alertmanager import ALERTMANAGER
from pergola.garden.components.observability.prometheus_garden.component import PROMETHEUS_GARDEN
from pergola.garden.components.observability.prometheus_longterm import (
    PROMETHEUS_LONGTERM,
)
from pergola.garden.components.seeds import Seed, used_of
from pergola.kube.yaml import parse
from tests.support.garden import landscape

LARGER: JsonObject = {"spec": {"runtimeCluster": {"volume": {"minimumSize": "150Gi"}}}}
DISCOVERY: JsonObject = {"spec": {"virtualCluster": {"gardener": {"gardenerDiscoveryServer": {}}}}}
WILDCARD: JsonObject = {
    "metadata": {"name": "wildcard", "namespace": "garden"},
    "data": {"tls.crt": "Y3J0", "tls.key": "a2V5"},
}
HOSTED = (ALERTMANAGER, PROMETHEUS_GARDEN, PROMETHEUS_LONGTERM)

each_hosted = pytest.mark.parametrize("component", HOSTED, ids=lambda each: each.name)


def objects_of(component: Component, *patches: JsonObject, **attributes: Any) -> list[JsonObject]:
    rendered = component.objects(landscape(*patches, **attributes))
    return [obj for each in rendered.managed for obj in each.objects]


def only(objects: Iterable[JsonObject], kind: str, name: str) -> JsonObject:
    (found,) = (obj for obj in objects if obj["kind"] == kind and name_of(obj) == name)
    return found


def size_of(obj: JsonObject) -> str:
    claim = map_at(obj, "spec", "storage", "volumeClaimTemplate", "spec", "resources", "requests")
    return str(claim["storage"])


def alerts(objects: Iterable[JsonObject]) -> set[str]:
    kinds = (obj for obj in objects if obj["kind"] == "PrometheusRule")
    groups = (group for obj in kinds for group in map_at(obj, "spec")["groups"])
    return {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}


@each_hosted
def test_a_host_is_below_the_first_ingress_domain_and_needs_the_password(
    component: Component,
) -> None:
    objects = objects_of(component)
    routes = only(objects, "VirtualService", f"virtual-garden-{component.name}")
    domain = "ingress.runtime-garden.local.gardener.cloud"
    assert map_at(routes, "spec")["hosts"] == [f"{component.name}.{domain}"]
    labels = map_at(routes, "metadata", "labels")
    assert labels["reference.gardener.cloud/basic-auth-secret-name"] == "observability-ingress"


@each_hosted
def test_the_wildcard_certificate_serves_all_hosts(component: Component) -> None:
    objects = objects_of(component, wildcard_certificate=WILDCARD)
    copied = only(objects, "Secret", f"garden-{component.name}-wildcard")
    assert copied["data"] == WILDCARD["data"]
    assert list(component.credentials(landscape(wildcard_certificate=WILDCARD))) == []


@each_hosted
def test_without_a_wildcard_certificate_a_host_gets_its_own(component: Component) -> None:
    (credential,) = component.credentials(landscape(wildcard_certificate=None))
    assert credential.config.name == f"{component.name}-tls"
    assert credential.options.signed_by is not None
    assert credential.options.signed_by.name == "ca-garden-runtime"


def test_volumes_have_the_minimum_size_of_the_garden() -> None:
    sizes = {
        "garden": size_of(only(objects_of(PROMETHEUS_GARDEN, LARGER), "Prometheus", "garden")),
        "longterm": size_of(
            only(objects_of(PROMETHEUS_LONGTERM, LARGER), "Prometheus", "longterm")
        ),
        "alerts": size_of(only(objects_of(ALERTMANAGER, LARGER), "Alertmanager", "garden")),
    }
    assert sizes == {"garden": "200Gi", "longterm": "150Gi", "alerts": "150Gi"}


def test_alertmanager_selects_configurations_by_label_and_refuses_reloads() -> None:
    objects = objects_of(ALERTMANAGER)
    spec = map_at(only(objects, "Alertmanager", "garden"), "spec")
    assert spec["alertmanagerConfigSelector"] == {"matchLabels": {"alertmanager": "garden"}}
    assert spec["replicas"] == 2
    first = map_at(only(objects, "VirtualService", "virtual-garden-alertmanager-garden"), "spec")
    assert first["http"][0]["match"] == [{"uri": {"prefix": "/-/reload"}}]
    assert first["http"][0]["directResponse"] == {"status": 403}


@pytest.mark.parametrize(
    ("component", "label"),
    [(PROMETHEUS_GARDEN, "garden"), (PROMETHEUS_LONGTERM, "longterm")],
    ids=["garden", "longterm"],
)
def test_labelled_monitoring_resources_of_all_namespaces_are_selected(
    component: Component, label: str
) -> None:
    spec = map_at(only(objects_of(component), "Prometheus", label), "spec")
    for kind in ("serviceMonitor", "podMonitor", "probe", "scrapeConfig", "rule"):
        assert spec[f"{kind}Selector"] == {"matchLabels": {"prometheus": label}}
        assert spec[f"{kind}NamespaceSelector"] == {}


def test_alerts_carry_the_landscape_and_a_link_to_the_dashboard() -> None:
    spec = map_at(only(objects_of(PROMETHEUS_GARDEN), "Prometheus", "garden"), "spec")
    assert spec["externalLabels"] == {"landscape": "test"}
    (receiver,) = map_at(spec, "alerting")["alertmanagers"]
    assert receiver["alertRelabelings"][1] == {
        "action": "replace",
        "sourceLabels": ["project", "name"],
        "regex": "(.+);(.+)",
        "targetLabel": "dashboard_url",
        "replacement": "https://dashboard.ingress.runtime-garden.local.gardener.cloud"
        "/namespace/garden-$1/shoots/$2",
    }


def test_containers_are_scraped_through_the_api_server() -> None:
    name = "prometheus-garden-additional-scrape-configs"
    secret = only(objects_of(PROMETHEUS_GARDEN), "Secret", name)
    scrapes = parse(base64.b64decode(map_at(secret, "data")["prometheus.yaml"]))
    assert isinstance(scrapes, list)
    (cadvisor,) = scrapes
    assert isinstance(cadvisor, dict)
    assert cadvisor["job_name"] == "cadvisor"


def test_seeds_are_federated_once_their_password_exists() -> None:
    seeds = {"seed_domains": ("one.example.org", "two.example.org")}
    without = [name_of(obj) for obj in objects_of(PROMETHEUS_GARDEN, **seeds)]
    assert "garden-prometheus-aggregate-ingress" not in without

    objects = objects_of(PROMETHEUS_GARDEN, **seeds, seed_password="global-observability")
    scrape = only(objects, "ScrapeConfig", "garden-prometheus-aggregate-ingress")
    spec = map_at(scrape, "spec")
    assert spec["staticConfigs"] == [
        {"targets": ["p-seed.one.example.org", "p-seed.two.example.org"]}
    ]
    assert map_at(spec, "basicAuth", "username")["name"] == "global-observability"


def test_seeds_with_one_domain_are_one_target() -> None:
    seeds = [Seed(name, "one.example.org", is_reachable=True) for name in ("one", "two")]
    assert used_of(seeds, ()).domains == ("one.example.org",)


def test_a_seed_in_the_runtime_cluster_is_reached_by_its_service() -> None:
    objects = objects_of(
        PROMETHEUS_GARDEN, seed_domains=("own.example.org",), own_seed_domain="own.example.org"
    )
    spec = map_at(only(objects, "ScrapeConfig", "garden-prometheus-aggregate"), "spec")
    assert spec["staticConfigs"] == [{"targets": ["prometheus-aggregate"]}]
    names = [name_of(obj) for obj in objects]
    assert "garden-prometheus-aggregate-ingress" not in names


def test_metrics_of_the_virtual_cluster_need_a_token_and_a_role_there() -> None:
    rendered = PROMETHEUS_GARDEN.objects(landscape())
    assert [name_of(obj) for obj in rendered.direct] == ["shoot-access-prometheus-garden"]
    (role,) = (obj for obj in rendered.managed[1].objects if obj["kind"] == "ClusterRole")
    assert role["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def test_only_a_garden_with_a_discovery_server_has_an_alert_about_it() -> None:
    assert "DiscoveryServerDown" not in alerts(objects_of(PROMETHEUS_GARDEN))
    assert "DiscoveryServerDown" in alerts(objects_of(PROMETHEUS_GARDEN, DISCOVERY))


def test_users_of_the_long_term_prometheus_connect_to_cortex() -> None:
    objects = objects_of(PROMETHEUS_LONGTERM)
    spec = map_at(only(objects, "VirtualService", "virtual-garden-prometheus-longterm"), "spec")
    assert map_at(spec["http"][0]["route"][0], "destination", "port") == {"number": 81}
    (container,) = map_at(only(objects, "Prometheus", "longterm"), "spec")["containers"]
    assert container["name"] == "cortex"


def test_the_long_term_prometheus_federates_the_garden_prometheus() -> None:
    scrape = only(objects_of(PROMETHEUS_LONGTERM), "ScrapeConfig", "longterm-prometheus-garden")
    matches = map_at(scrape, "spec", "params")["match[]"]
    assert '{__name__="garden_shoot_info"}' in matches
    assert map_at(scrape, "spec")["metricsPath"] == "/federate"
