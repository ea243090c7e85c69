"""Istio's control plane and the ingress gateway (spec 20 §13)."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.garden.components.service_mesh.objects import ISTIO
from pergola.kube.yaml import parse
from tests.support.garden import landscape


def ingress(*patches: JsonObject, **attributes: Any) -> dict[tuple[str, str], JsonObject]:
    [_, managed] = ISTIO.objects(landscape(*patches, **attributes)).managed
    return {(obj["kind"], name_of(obj)): obj for obj in managed.objects}


def runtime(**fields: object) -> JsonObject:
    return {"spec": {"runtimeCluster": fields}}


def load_balancers(**fields: object) -> JsonObject:
    return runtime(settings={"loadBalancerServices": fields})


def test_both_bundles_are_in_the_namespace_of_the_control_plane() -> None:
    rendered = ISTIO.objects(landscape())
    assert [(each.namespace, each.name) for each in rendered.managed] == [
        ("istio-system", "istio-system"),
        ("istio-system", "virtual-garden-istio"),
    ]
    assert [name_of(obj) for obj in rendered.direct] == ["istio-system"]


def test_objects_are_visible_only_in_namespaces_that_they_are_exported_to() -> None:
    [control_plane, _] = ISTIO.objects(landscape()).managed
    [config] = [obj for obj in control_plane.objects if obj["kind"] == "ConfigMap"]
    mesh = parse(config["data"]["mesh"])
    assert isinstance(mesh, dict)
    exports = {name: value for name, value in mesh.items() if name.endswith("ExportTo")}
    assert len(exports) == 3
    assert all(value == ["~"] for value in exports.values())


@pytest.mark.parametrize(
    ("zones", "least", "most"), [([], 2, 16), (["a"], 2, 16), (["a", "b", "c"], 6, 48)]
)
def test_the_gateway_scales_between_two_and_sixteen_pods_per_zone(
    zones: list[str], least: int, most: int
) -> None:
    found = ingress(runtime(provider={"zones": zones}))
    scaling = map_at(found["HorizontalPodAutoscaler", "istio-ingressgateway"], "spec")
    assert (scaling["minReplicas"], scaling["maxReplicas"]) == (least, most)


def test_load_balancers_get_the_annotations_and_the_policy_of_the_settings() -> None:
    found = ingress(load_balancers(annotations={"a": "b"}, externalTrafficPolicy="Local"))
    service = found["Service", "istio-ingressgateway"]
    assert map_at(service, "metadata", "annotations")["a"] == "b"
    assert map_at(service, "spec")["externalTrafficPolicy"] == "Local"
    assert "externalTrafficPolicy" not in map_at(
        ingress()["Service", "istio-ingressgateway"], "spec"
    )


def test_services_are_dual_stack_only_if_the_cluster_is() -> None:
    both = ingress(runtime(networking={"ipFamilies": ["IPv6", "IPv4"]}))
    for name in ("istio-ingressgateway", "istio-ingressgateway-internal"):
        assert map_at(both["Service", name], "spec")["ipFamilies"] == ["IPv6", "IPv4"]
        assert "ipFamilies" not in map_at(ingress()["Service", name], "spec")


@pytest.mark.parametrize(
    ("version", "distribution"), [("1.33.4", "PreferClose"), ("1.34.0", "PreferSameZone")]
)
def test_requests_of_pods_stay_in_their_zone(version: str, distribution: str) -> None:
    found = ingress(runtime_version=version)
    spec = map_at(found["Service", "istio-ingressgateway-internal"], "spec")
    assert spec["trafficDistribution"] == distribution


def test_the_proxy_protocol_is_read_only_if_it_is_allowed() -> None:
    assert ("EnvoyFilter", "proxy-protocol-sni") not in ingress()
    allowed = ingress(load_balancers(proxyProtocol={"allowed": True}))
    assert ("EnvoyFilter", "proxy-protocol-sni") in allowed


def test_clients_are_authenticated_only_if_their_connections_are_decrypted() -> None:
    decrypts = ("EnvoyFilter", "apiserver-tls-termination")
    assert decrypts in ingress()
    assert decrypts not in ingress(feature_gates={"IstioTLSTermination": False})


def test_identity_headers_of_clients_are_dropped_before_the_gateway_sets_its_own() -> None:
    [patch] = map_at(ingress()["EnvoyFilter", "apiserver-tls-termination"], "spec")["configPatches"]
    config = map_at(patch, "patch", "value", "typed_config", "defaultSourceCode")
    code = config["inlineString"]
    assert code.index("drop_claims(headers)\n") < code.index('headers:add("X-Remote-User"')


def test_a_deployment_with_another_selector_is_replaced_while_its_pods_serve() -> None:
    deployment = ingress()["Deployment", "istio-ingressgateway"]
    annotations = map_at(deployment, "metadata", "annotations")
    assert annotations["resources.gardener.cloud/delete-on-invalid-update"] == "true"
    assert (
        annotations["resources.gardener.cloud/deletion-propagation-on-invalid-update"] == "Orphan"
    )
