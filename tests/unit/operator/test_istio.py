"""Reaching a host through the garden's ingress gateway (spec 20 §15.3)."""

import base64

from pergola.api.objects import map_at, name_of, namespace_of
from pergola.garden.components import istio
from tests.support.garden import landscape

LABELS = {"app": "example"}
HOSTS = ("example.ingress.test",)


def test_a_gateway_selects_the_pods_of_the_garden() -> None:
    made = istio.gateway("example", LABELS, istio.https_server(HOSTS, "garden-example-cert"))
    assert map_at(made, "spec", "selector") == {"istio": "ingressgateway", "istio-role": "garden"}


def test_routes_and_rules_are_visible_only_to_the_ingress_gateway() -> None:
    routes = istio.http_routes("example", LABELS, HOSTS, istio.route("example", 80))
    rule = istio.destination_rule("example", LABELS, "example")
    assert [map_at(each, "spec")["exportTo"] for each in (routes, rule)] == [
        ["virtual-garden-istio-ingress"],
        ["virtual-garden-istio-ingress"],
    ]


def test_a_refused_path_has_a_direct_response_and_no_destination() -> None:
    refused = istio.refused("reload-endpoint", "/-/reload")
    assert refused["directResponse"] == {"status": 403}
    assert "route" not in refused


def test_an_encrypted_connection_is_routed_by_its_server_name() -> None:
    made = istio.tls_route("example", LABELS, HOSTS, "example", 10443)
    [routed] = map_at(made, "spec")["tls"]
    assert routed["match"] == [{"port": 443, "sniHosts": list(HOSTS)}]
    assert routed["route"] == [
        {
            "destination": {
                "host": "example.garden.svc.cluster.local",
                "port": {"number": 10443},
            }
        }
    ]


def test_only_the_certificate_is_copied_for_the_gateway() -> None:
    data = {"ca.crt": "YQ==", "tls.crt": "Yg==", "tls.key": "Yw=="}
    secret = {"metadata": {"name": "wildcard", "namespace": "garden"}, "data": data}
    copy = istio.certificate("example", LABELS, secret)
    assert (namespace_of(copy), name_of(copy)) == (
        "virtual-garden-istio-ingress",
        "garden-example-wildcard",
    )
    assert copy["data"] == {"tls.crt": "Yg==", "tls.key": "Yw=="}


def test_the_gateway_trusts_the_bundle_of_the_authority_that_signed() -> None:
    bundle = landscape().credentials.bundle("ca-gardener")
    [(key, value)] = istio.authority("example-ca", LABELS, bundle)["data"].items()
    assert (key, base64.b64decode(value)) == ("cacert", b"bundle")
