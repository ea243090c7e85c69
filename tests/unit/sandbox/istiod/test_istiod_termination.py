"""Servers that decrypt connections: their certificates, hosts and routes."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.pki import Authority
from pergola.sandbox.istiod.clusters import CLUSTER
from pergola.sandbox.istiod.envoy import LISTENER, problems, render
from pergola.sandbox.istiod.selection import Objects, Proxy

NOW, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
AUTHORITY = Authority.create("test", NOW, DAY)
PAIR = AUTHORITY.issue_server("web", ["web.example.com"], NOW, DAY)
PROXY = Proxy("ingress", {"istio": "ingressgateway"})
META = {"name": "web", "namespace": "garden"}
HOST = "web.garden.svc.cluster.local"
FILES = {"tls.crt": PAIR.public, "tls.key": PAIR.private, "ca.crt": AUTHORITY.pair.public}
SECRET = {name: b64encode(content).decode() for name, content in FILES.items()}
SECRETS = {Key("ingress", "web"): SECRET}
DESTINATION = {"host": "web", "port": {"number": 443}}


def server(*hosts: str, mode: str = "SIMPLE", protocol: str = "HTTPS") -> JsonObject:
    return {
        "hosts": list(hosts),
        "port": {"name": "tls", "number": 443, "protocol": protocol},
        "tls": {"mode": mode, "credentialName": "web"},
    }


def gateway(*servers: JsonObject) -> JsonObject:
    return {
        "metadata": META,
        "spec": {"selector": {"istio": "ingressgateway"}, "servers": list(servers)},
    }


def virtual_service(*hosts: str, name: str = "web", created: str = "") -> JsonObject:
    meta = {**META, "name": name, "creationTimestamp": created}
    rule = {"route": [{"destination": DESTINATION}]}
    return {
        "metadata": meta,
        "spec": {"gateways": ["web"], "hosts": list(hosts), "http": [rule]},
    }


def chains(
    *servers: JsonObject,
    services: tuple[JsonObject, ...] = (virtual_service("web.example.com"),),
    secrets: dict[Key, dict[str, str]] = SECRETS,
) -> list[JsonObject]:
    objects = Objects([gateway(*servers)], services, secrets=secrets)
    return [
        chain
        for listener in render(PROXY, objects)[LISTENER]
        for chain in listener["filter_chains"]
    ]


def domains(chain: JsonObject) -> list[list[str]]:
    routes = chain["filters"][0]["typed_config"]["route_config"]
    return [host["domains"] for host in routes["virtual_hosts"]]


def cluster(**tls: object) -> JsonObject | None:
    rule: JsonObject = {
        "metadata": META,
        "spec": {
            "host": "web",
            "trafficPolicy": {
                "tls": tls,
                "connectionPool": {"http": {"useClientProtocol": True}},
            },
        },
    }
    objects = Objects([gateway(server("*"))], [virtual_service("*")], [rule], secrets=SECRETS)
    return next(iter(render(PROXY, objects)[CLUSTER]), None)


def context(found: JsonObject | None) -> JsonObject:
    assert found is not None
    settings: JsonObject = found["transport_socket"]["typed_config"]
    return settings


@pytest.mark.parametrize(
    ("mode", "is_required", "has_authority"),
    [("SIMPLE", False, False), ("OPTIONAL_MUTUAL", False, True), ("MUTUAL", True, True)],
)
def test_the_tls_mode_determines_whether_clients_need_a_certificate(
    mode: str, is_required: bool, has_authority: bool
) -> None:
    (chain,) = chains(server("web.example.com", mode=mode))

    settings = context(chain)
    common = settings["common_tls_context"]
    assert settings["require_client_certificate"] == is_required
    assert ("validation_context" in common) == has_authority
    assert common["tls_certificates"][0]["private_key"] == {"inline_string": PAIR.private.decode()}
    assert chain["filter_chain_match"] == {"server_names": ["web.example.com"]}


def test_routes_have_the_names_of_istio() -> None:
    (chain,) = chains(server("web.example.com"))

    routes = chain["filters"][0]["typed_config"]["route_config"]
    assert routes["name"] == "https.443.tls.web.garden"


def test_a_server_serves_the_hosts_that_it_admits() -> None:
    (chain,) = chains(
        server("*.example.com"),
        services=(
            virtual_service("a.example.com", "a.example.org"),
            virtual_service("*", name="b"),
        ),
    )

    assert sorted(domains(chain)) == [["*.example.com"], ["a.example.com"]]


def test_the_older_of_two_virtual_services_wins_a_host() -> None:
    young = virtual_service("web.example.com", name="a", created="2026-02-01")
    old = virtual_service("web.example.com", name="b", created="2026-01-01")

    (chain,) = chains(server("*"), services=(young, old))

    routes = chain["filters"][0]["typed_config"]["route_config"]
    assert [host["name"] for host in routes["virtual_hosts"]] == ["garden/b"]


def test_a_name_that_two_servers_have_belongs_to_the_first() -> None:
    found = chains(server("a.example.com"), server("a.example.com", "b.example.com"))

    assert [chain["filter_chain_match"]["server_names"] for chain in found] == [
        ["a.example.com"],
        ["b.example.com"],
    ]


def test_a_server_without_a_usable_certificate_is_left_out_and_reported() -> None:
    objects = Objects([gateway(server("web.example.com"))], [virtual_service("web.example.com")])

    assert render(PROXY, objects) == {LISTENER: [], CLUSTER: []}
    assert list(problems(PROXY, objects)) == [
        "Gateway garden/web: Secret ingress/web does not exist"
    ]


def test_certificates_of_clients_need_an_authority() -> None:
    pair = {name: text for name, text in SECRET.items() if name != "ca.crt"}

    secrets = {Key("ingress", "web"): pair}
    assert chains(server("*", mode="MUTUAL"), secrets=secrets) == []
    assert len(chains(server("*", mode="SIMPLE"), secrets=secrets)) == 1


def test_other_protocols_are_not_decrypted() -> None:
    assert chains(server("web.example.com", protocol="TLS")) == []


def test_the_gateway_verifies_the_server_behind_it() -> None:
    settings = context(cluster(mode="SIMPLE", credentialName="web", sni=HOST))

    assert settings["sni"] == HOST
    common = settings["common_tls_context"]
    assert common["validation_context"]["trusted_ca"]["inline_string"]
    assert "tls_certificates" not in common


def test_the_gateway_presents_its_certificate_only_in_mutual_mode() -> None:
    settings = context(cluster(mode="MUTUAL", credentialName="web"))

    assert len(settings["common_tls_context"]["tls_certificates"]) == 1


@pytest.mark.parametrize("tls", [{}, {"mode": "DISABLE"}], ids=["none", "disabled"])
def test_without_tls_connections_to_a_service_are_plain(tls: JsonObject) -> None:
    found = cluster(**tls)

    assert found is not None
    assert "transport_socket" not in found
    assert "typed_extension_protocol_options" in found


@pytest.mark.parametrize(
    "tls",
    [
        {"mode": "SIMPLE", "credentialName": "missing"},
        {"mode": "SIMPLE"},
        {"mode": "MUTUAL"},
        {"mode": "ISTIO_MUTUAL"},
    ],
    ids=["missing", "no-authority", "no-certificate", "unsupported"],
)
def test_connections_that_cannot_be_encrypted_are_refused(tls: JsonObject) -> None:
    assert cluster(**tls) is None
