"""kube-state-metrics and blackbox-exporter (spec 20 §16.8)."""

from typing import Any

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.garden.components.component import Component
from pergola.garden.components.observability.blackbox_exporter import (
    BLACKBOX_EXPORTER,
    modules,
    probes,
)
from pergola.garden.components.observability.kube_state_metrics import (
    KUBE_STATE_METRICS,
    custom_resource_metrics,
    metric_names,
)
from tests.support.garden import landscape

DISCOVERY: JsonObject = {"spec": {"virtualCluster": {"gardener": {"gardenerDiscoveryServer": {}}}}}
PATTERNS: JsonObject = {
    "spec": {
        "virtualCluster": {
            "kubernetes": {
                "kubeAPIServer": {"sni": {"domainPatterns": ["*.example.org", "api.example.org"]}}
            }
        }
    }
}
WILDCARD: JsonObject = {"metadata": {"name": "wildcard", "namespace": "garden"}}


def objects_of(component: Component, *patches: JsonObject, **attributes: Any) -> list[JsonObject]:
    (managed,) = component.objects(landscape(*patches, **attributes)).managed
    assert managed.condition == "ObservabilityComponentsHealthy"
    return list(managed.objects)


def pod_of(objects: list[JsonObject]) -> JsonObject:
    (deployment,) = (obj for obj in objects if obj["kind"] == "Deployment")
    return map_at(deployment, "spec", "template", "spec")


def targets() -> dict[str, tuple[str, ...]]:
    return {probe.name: probe.targets for probe in probes(landscape())}


def test_endpoints_are_probed_by_their_public_names() -> None:
    assert targets() == {
        "apiserver": (
            "https://gardener.virtual-garden.local.gardener.cloud/healthz",
            "https://api.garden.local-test.gardener.cloud/healthz",
        ),
        "gardener-apiserver": ("https://gardener-apiserver.garden.svc/healthz",),
        "dashboard": ("https://dashboard.ingress.runtime-garden.local.gardener.cloud/healthz",),
    }


def test_a_pattern_that_names_no_host_is_not_probed() -> None:
    (api_servers, *_) = probes(landscape(PATTERNS))
    assert api_servers.targets[1:] == ("https://api.example.org/healthz",)


def test_the_discovery_server_is_probed_if_it_exists() -> None:
    assert [probe.name for probe in probes(landscape(DISCOVERY))][-1] == "discovery-server"
    assert "http_gardener_discovery_server" in modules(landscape(DISCOVERY))
    assert "http_gardener_discovery_server" not in modules(landscape())


def test_each_probe_has_its_module() -> None:
    assert {probe.module for probe in probes(landscape(DISCOVERY))} <= set(
        modules(landscape(DISCOVERY))
    )


def test_the_dashboard_is_verified_by_the_authority_that_signed_its_certificate() -> None:
    own = map_at(modules(landscape(wildcard_certificate=None)), "http_gardener_dashboard", "http")
    assert map_at(own, "tls_config")["ca_file"].endswith("/gardener-ca/bundle.crt")
    shared = modules(landscape(wildcard_certificate=WILDCARD))
    assert "tls_config" not in map_at(shared, "http_gardener_dashboard", "http")


def test_probes_use_the_token_of_the_garden_prometheus() -> None:
    (access,) = (
        each for each in pod_of(objects_of(BLACKBOX_EXPORTER))["volumes"] if "projected" in each
    )
    names = [source["secret"]["name"] for source in access["projected"]["sources"]]
    assert names == ["ca-bundle-0123abcd", "shoot-access-prometheus-garden"]


def test_all_metrics_of_custom_resources_are_kept() -> None:
    resources = custom_resource_metrics()["spec"]["resources"]
    made = [
        f"{resource.get('metricNamePrefix', 'kube_customresource')}_{metric['name']}"
        for resource in resources
        for metric in resource["metrics"]
    ]
    assert made == metric_names()

    (container,) = pod_of(objects_of(KUBE_STATE_METRICS))["containers"]
    (kept,) = (arg for arg in container["args"] if arg.startswith("--metric-allowlist="))
    assert all(f"^{name}$" in kept for name in made)


def test_kube_state_metrics_reports_the_states_that_alerts_use() -> None:
    garden = custom_resource_metrics()["spec"]["resources"][1]
    condition, operation = garden["metrics"]
    assert map_at(condition, "each", "stateSet")["labelName"] == "status"
    assert map_at(operation, "each", "stateSet")["labelName"] == "state"
    assert {"Error", "Failed", "Processing"} <= set(map_at(operation, "each", "stateSet")["list"])


def test_a_changed_configuration_rolls_out_kube_state_metrics() -> None:
    objects = objects_of(KUBE_STATE_METRICS)
    (config,) = (obj for obj in objects if obj["kind"] == "ConfigMap")
    (volume,) = pod_of(objects)["volumes"]
    assert volume["configMap"]["name"] == name_of(config)
    assert config["immutable"] is True
