"""Access of the operator and of people to the virtual cluster (spec 20 §15.5)."""

import base64

from pergola.api.objects import JsonObject, map_at, maps_at, name_of
from pergola.garden.components.gardener_access import GARDENER_ACCESS
from pergola.garden.landscape import Landscape
from pergola.kube.yaml import parse
from tests.support.garden import landscape


def kubeconfigs(of: Landscape) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = {}
    for secret in GARDENER_ACCESS.objects(of).direct:
        encoded = map_at(secret, "data")["kubeconfig"]
        assert isinstance(encoded, str)
        config = parse(base64.b64decode(encoded))
        assert isinstance(config, dict)
        found[name_of(secret)] = config
    return found


def test_one_kubeconfig_works_outside_and_one_without_dns_outside() -> None:
    servers = {
        name: map_at(maps_at(config, "clusters")[0], "cluster")["server"]
        for name, config in kubeconfigs(landscape()).items()
    }
    assert servers == {
        "gardener": "https://api.virtual-garden.local.gardener.cloud",
        "gardener-internal": "https://virtual-garden-kube-apiserver.garden.svc.cluster.local",
    }


def test_existing_tokens_in_secrets_are_kept() -> None:
    found = kubeconfigs(landscape(access_tokens={"gardener": "abc"}))
    users = {name: map_at(maps_at(each, "users")[0], "user") for name, each in found.items()}
    assert users == {"gardener": {"token": "abc"}, "gardener-internal": {"token": ""}}


def test_both_accounts_keep_their_permissions_while_the_garden_is_deleted() -> None:
    (managed,) = GARDENER_ACCESS.objects(landscape()).managed
    assert managed.keep
    (binding,) = managed.objects
    assert [each["name"] for each in maps_at(binding, "subjects")] == [
        "gardener",
        "gardener-internal",
    ]
