"""gardener-discovery-server (spec 20 §16.7)."""

import base64

import orjson

from pergola.api.objects import JsonObject, labels_of, map_at, maps_at, name_of, namespace_of
from pergola.garden.components.component import Target
from pergola.garden.components.gardener_discovery_server import GARDENER_DISCOVERY_SERVER
from pergola.garden.landscape import Landscape
from tests.support.garden import landscape

HOST = "discovery.ingress.runtime-garden.local.gardener.cloud"


def server(**fields: object) -> JsonObject:
    return {"spec": {"virtualCluster": {"gardener": {"gardenerDiscoveryServer": fields}}}}


def objects(of: Landscape, target: Target) -> list[JsonObject]:
    return [
        obj
        for managed in GARDENER_DISCOVERY_SERVER.objects(of).managed
        if managed.target is target
        for obj in managed.objects
    ]


def one(of: Landscape, kind: str, target: Target = Target.RUNTIME) -> JsonObject:
    (found,) = (obj for obj in objects(of, target) if obj["kind"] == kind)
    return found


def published(of: Landscape, key: str) -> JsonObject:
    content = base64.b64decode(map_at(one(of, "Secret"), "data")[key])
    found: JsonObject = orjson.loads(content)
    return found


def test_a_garden_without_its_settings_has_no_server() -> None:
    reason = GARDENER_DISCOVERY_SERVER.absent(landscape())
    assert reason == "spec.virtualCluster.gardener.gardenerDiscoveryServer is not set"
    assert GARDENER_DISCOVERY_SERVER.absent(landscape(server())) is None


def test_it_publishes_the_issuer_and_the_keys_of_workload_identities() -> None:
    of = landscape(server())
    config = published(of, "openid-configuration.json")
    issuer = f"https://{HOST}/garden/workload-identity/issuer"
    assert config["issuer"] == issuer
    assert config["jwks_uri"] == f"{issuer}/jwks"
    (key,) = maps_at(published(of, "jwks.json"), "keys")
    assert (key["kty"], key["alg"], key["use"]) == ("RSA", "RS256", "sig")


def test_the_gateway_does_not_decrypt_its_connections() -> None:
    (listener,) = maps_at(one(landscape(server()), "Gateway"), "spec", "servers")
    assert listener["hosts"] == [HOST]
    assert map_at(listener, "tls")["mode"] == "PASSTHROUGH"


def test_the_domain_of_the_server_is_published_for_shoots() -> None:
    of = landscape(server(domain={"name": "keys.example.org"}))
    secret = one(of, "Secret", Target.VIRTUAL)
    assert (namespace_of(secret), name_of(secret)) == ("garden", "shoot-service-account-issuer")
    assert labels_of(secret)["gardener.cloud/role"] == "shoot-service-account-issuer"
    assert base64.b64decode(map_at(secret, "data")["hostname"]) == b"keys.example.org"


def test_a_certificate_is_generated_only_if_none_is_given() -> None:
    wildcard: JsonObject = {"metadata": {"name": "wildcard"}, "data": {}}
    cases = {
        "gardener-discovery-server-tls-0123abcd": landscape(server(), wildcard_certificate=None),
        "wildcard": landscape(server(), wildcard_certificate=wildcard),
        "own": landscape(server(tlsSecretName="own"), wildcard_certificate=wildcard),
    }
    for name, of in cases.items():
        volumes = maps_at(one(of, "Deployment"), "spec", "template", "spec", "volumes")
        (secret,) = (
            map_at(volume, "secret")["secretName"]
            for volume in volumes
            if volume["name"] == "gardener-discovery-server-tls"
        )
        assert secret == name
    generated = [len(list(GARDENER_DISCOVERY_SERVER.credentials(of))) for of in cases.values()]
    assert generated == [1, 0, 0]


def test_it_may_only_read_secrets_of_issuers() -> None:
    of = landscape(server())
    assert namespace_of(one(of, "Role", Target.VIRTUAL)) == "gardener-system-shoot-issuer"
    rules = maps_at(one(of, "ClusterRole", Target.VIRTUAL), "rules")
    assert all("secrets" not in rule["resources"] for rule in rules)
