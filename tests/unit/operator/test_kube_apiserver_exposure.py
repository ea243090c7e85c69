"""The API server's Services and its names (spec 20 §15.3)."""

import pytest

from pergola.api.objects import JsonObject, Key, labels_of, map_at, name_of
from pergola.garden.components.component import Rendered
from pergola.garden.components.kube_apiserver_exposure import services, sni
from pergola.garden.components.kube_apiserver_exposure.hosts import (
    CertificateMissing,
    hosts_of,
    other_certificate,
)
from tests.support.garden import landscape

API = "api.virtual-garden.local.gardener.cloud"
GARDENER = "gardener.virtual-garden.local.gardener.cloud"
PASSTHROUGH = {"IstioTLSTermination": False}
CERTIFICATE: JsonObject = {
    "metadata": {"name": "sni", "namespace": "garden"},
    "data": {"tls.crt": "Yw==", "tls.key": "aw=="},
}


def with_names(*patterns: str, secret: str | None = None) -> JsonObject:
    server = {"sni": {"domainPatterns": list(patterns), "secretName": secret}}
    return {"spec": {"virtualCluster": {"kubernetes": {"kubeAPIServer": server}}}}


def named(rendered: Rendered, kind: str) -> dict[str, JsonObject]:
    return {name_of(obj): map_at(obj, "spec") for obj in rendered.direct if obj["kind"] == kind}


def managed(rendered: Rendered) -> dict[str, tuple[JsonObject, ...]]:
    return {each.name: each.objects for each in rendered.managed}


def test_the_service_is_open_to_namespaces_that_may_reach_the_api_server() -> None:
    [service, *_] = services.render(landscape()).direct
    assert map_at(service, "metadata", "annotations") == {
        "networking.istio.io/exportTo": "virtual-garden-istio-ingress",
        "networking.resources.gardener.cloud/from-all-garden-scrape-targets-allowed-ports": (
            '[{"protocol":"TCP","port":443}]'
        ),
        "networking.resources.gardener.cloud/namespace-selectors": (
            '[{"matchLabels":{"networking.gardener.cloud/access-target-apiserver":"allowed"}}]'
        ),
    }


def test_only_a_gateway_that_decrypts_needs_more_services() -> None:
    names = [name_of(obj) for obj in services.render(landscape()).direct]
    assert names == [
        "virtual-garden-kube-apiserver",
        "virtual-garden-kube-apiserver-mtls",
        "virtual-garden-kube-apiserver-connection-upgrade",
    ]
    assert len(services.render(landscape(feature_gates=PASSTHROUGH)).direct) == 1


def test_only_the_service_that_the_gateway_does_not_use_is_scraped() -> None:
    scraped = [
        name_of(obj)
        for obj in services.render(landscape()).direct
        if "metrics-scrape-target" in labels_of(obj)
    ]
    assert scraped == ["virtual-garden-kube-apiserver"]


def test_requests_stay_in_their_zone_unless_connections_are_decrypted() -> None:
    routing = {"settings": {"topologyAwareRouting": {"enabled": True}}}
    patch: JsonObject = {"spec": {"runtimeCluster": routing}}
    [service] = services.render(landscape(patch, feature_gates=PASSTHROUGH)).direct
    assert map_at(service, "spec")["trafficDistribution"] == "PreferSameZone"
    for each in services.render(landscape(patch)).direct:
        assert "trafficDistribution" not in map_at(each, "spec")


def test_without_patterns_all_names_have_the_certificate_of_the_api_server() -> None:
    assert hosts_of(landscape(with_names())).own == (API, GARDENER)
    assert hosts_of(landscape(with_names())).other == ()


@pytest.mark.parametrize(
    ("pattern", "other"),
    [
        (GARDENER, (GARDENER,)),
        ("*.virtual-garden.local.gardener.cloud", (API, GARDENER)),
        ("*.local.gardener.cloud", ()),
        ("api.example.com", ()),
    ],
)
def test_names_that_a_pattern_covers_have_the_other_certificate(
    pattern: str, other: tuple[str, ...]
) -> None:
    assert hosts_of(landscape(with_names(pattern))).other == other


def test_a_missing_certificate_is_reported_with_its_name() -> None:
    with pytest.raises(CertificateMissing, match="Secret garden/sni"):
        other_certificate(landscape(with_names(GARDENER, secret="sni")))
    with pytest.raises(CertificateMissing, match=r"gardener\.cloud/role=garden-cert"):
        other_certificate(landscape(with_names(GARDENER), wildcard_certificate=None))


def test_a_gateway_that_does_not_decrypt_forwards_connections() -> None:
    rendered = sni.render(landscape(feature_gates=PASSTHROUGH))
    [gateway] = named(rendered, "Gateway").values()
    assert gateway["servers"][0]["tls"] == {"mode": "PASSTHROUGH"}
    assert gateway["servers"][0]["hosts"] == [API, GARDENER]
    assert rendered.managed == ()


def test_a_gateway_that_decrypts_verifies_clients_and_servers() -> None:
    rendered = sni.render(landscape())
    secrets = {name_of(obj): obj["data"] for obj in managed(rendered)["istio-tls-secrets"]}
    assert set(secrets) == {"garden-kube-apiserver-tls", "garden-kube-apiserver-istio-mtls"}
    assert all(set(data) == {"cacert", "cert", "key"} for data in secrets.values())


def test_only_clients_with_a_certificate_use_the_connection_of_the_gateway() -> None:
    rules = named(sni.render(landscape()), "DestinationRule")
    modes = {name: map_at(spec, "trafficPolicy", "tls")["mode"] for name, spec in rules.items()}
    assert modes == {
        "virtual-garden-kube-apiserver": "SIMPLE",
        "virtual-garden-kube-apiserver-mtls": "MUTUAL",
        "virtual-garden-kube-apiserver-connection-upgrade": "SIMPLE",
    }


def test_names_with_another_certificate_have_a_separate_server() -> None:
    chosen = landscape(
        with_names(GARDENER, secret="sni"),
        references={("Secret", Key("garden", "sni")): CERTIFICATE},
    )
    rendered = sni.render(chosen)
    [gateway] = named(rendered, "Gateway").values()
    assert {server["port"]["name"]: server["hosts"] for server in gateway["servers"]} == {
        "tls": [API],
        "wildcard-tls": [GARDENER],
    }
    secrets = {name_of(obj): obj["data"] for obj in managed(rendered)["istio-tls-secrets"]}
    assert secrets["garden-kube-apiserver-wildcard-tls"]["cert"] == "Yw=="


def test_objects_for_a_decrypting_gateway_are_removed_with_the_feature_gate() -> None:
    decrypting, passing = landscape(), landscape(feature_gates=PASSTHROUGH)
    removed = sni.TLS_SERVICES_CLEANUP.leftovers
    needed = [services.render(decrypting), sni.render(decrypting)]
    kept = [services.render(passing), sni.render(passing)]
    assert {key.name for key in removed.managed} == set(managed(needed[1]))
    assert {(each.gvk.kind, each.key.name) for each in removed.direct} == {
        (obj["kind"], name_of(obj)) for rendered in needed for obj in rendered.direct
    } - {(obj["kind"], name_of(obj)) for rendered in kept for obj in rendered.direct}
    assert sni.TLS_SERVICES_CLEANUP.absent(decrypting) is None
    assert sni.TLS_SERVICES_CLEANUP.absent(passing)


def test_every_name_has_a_route_for_clients_with_a_certificate() -> None:
    chosen = landscape(with_names(GARDENER), wildcard_certificate=CERTIFICATE)
    [filters] = managed(sni.render(chosen))["kube-apiserver-sni"]
    routes = [
        patch["patch"]["value"]["match"]["dynamic_metadata"][0]["value"]["string_match"]["exact"]
        for patch in map_at(filters, "spec")["configPatches"]
        if patch["patch"]["operation"] == "INSERT_BEFORE"
    ]
    assert routes == [API, GARDENER]
