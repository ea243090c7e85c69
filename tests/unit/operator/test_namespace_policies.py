"""The NetworkPolicies of namespaces that belong to a garden (spec 21 §5.5)."""

import pytest

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject
from pergola.kube.applied import has_manager
from pergola.operator.network_policies import (
    NAMES,
    Networks,
    policies,
    policy_names,
    to_endpoints,
)

NETWORKS = Networks(
    own=tuple(map(parse_network, ("10.1.0.0/16", "10.2.0.0/16", "2001:db8::/64"))),
    services=(parse_network("10.2.0.0/16"), parse_network("2001:db8::/64")),
    blocked=(parse_network("169.254.169.254/32"),),
    api_server=to_endpoints(["10.0.0.7"], [6443, 443]),
)


def rendered(networks: Networks = NETWORKS) -> dict[str, JsonObject]:
    return {each["metadata"]["name"]: each["spec"] for each in policies("garden", {}, networks)}


@pytest.mark.parametrize(
    ("namespace", "labels", "names"),
    [
        ("garden", {}, NAMES),
        ("shoot--a", {"gardener.cloud/role": "shoot"}, NAMES),
        ("extension-a", {"gardener.cloud/role": "extension"}, NAMES),
        (
            "istio-system",
            {"gardener.cloud/role": "istio-system"},
            {"deny-all", "allow-to-dns", "allow-to-runtime-apiserver"},
        ),
        (
            "handler",
            {"handler.exposureclass.gardener.cloud/name": "a"},
            {"deny-all", "allow-to-dns"},
        ),
        ("selected", {"team": "a"}, NAMES),
        ("kube-system", {}, set()),
    ],
)
def test_policies_follow_from_the_role_of_the_namespace(
    namespace: str, labels: dict[str, str], names: set[str]
) -> None:
    assert policy_names(namespace, labels, [{"matchLabels": {"team": "a"}}]) == names


def test_all_connections_are_forbidden() -> None:
    assert rendered()["deny-all"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize("name", sorted(NAMES - {"deny-all"}))
def test_allowed_connections_need_a_label(name: str) -> None:
    label = f"networking.gardener.cloud/{name.removeprefix('allow-')}"
    spec = rendered()[name]
    assert spec["podSelector"] == {"matchLabels": {label: "allowed"}}
    assert spec["policyTypes"] == ["Egress"]


def blocks(name: str) -> dict[str, list[str]]:
    peers = rendered()[name]["egress"][0]["to"]
    found = (peer["ipBlock"] for peer in peers if "ipBlock" in peer)
    return {block["cidr"]: block.get("except", []) for block in found}


def test_public_networks_exclude_private_and_blocked_ones() -> None:
    public = blocks("allow-to-public-networks")
    assert {"10.0.0.0/8", "172.16.0.0/12", "169.254.169.254/32"} <= set(public["0.0.0.0/0"])
    assert public["::/0"] == ["fc00::/7", "fe80::/10"]


def test_private_networks_exclude_those_of_the_runtime_cluster() -> None:
    private = blocks("allow-to-private-networks")
    assert private["10.0.0.0/8"] == ["10.1.0.0/16", "10.2.0.0/16"]
    assert private["192.168.0.0/16"] == []


def test_the_policy_for_blocked_networks_exists_only_if_there_are_any() -> None:
    assert blocks("allow-to-blocked-cidrs") == {"169.254.169.254/32": []}
    none = Networks(own=NETWORKS.own, services=NETWORKS.services)
    assert "allow-to-blocked-cidrs" not in rendered(none)


def test_dns_is_reached_by_its_pods_and_by_its_addresses() -> None:
    rule = rendered()["allow-to-dns"]["egress"][0]
    assert {(port["protocol"], port["port"]) for port in rule["ports"]} == {
        ("UDP", 53),
        ("TCP", 53),
        ("UDP", 8053),
        ("TCP", 8053),
    }
    assert {"10.2.0.10/32", "2001:db8::a/128", "169.254.20.10/32"} == set(blocks("allow-to-dns"))


def test_the_api_server_is_reached_at_its_endpoints() -> None:
    rule = rendered()["allow-to-runtime-apiserver"]["egress"][0]
    assert rule["to"] == [{"ipBlock": {"cidr": "10.0.0.7/32"}}]
    assert [port["port"] for port in rule["ports"]] == [443, 6443]


def test_no_policy_is_written_for_an_api_server_without_addresses() -> None:
    unknown = Networks(own=NETWORKS.own, services=NETWORKS.services)
    assert "allow-to-runtime-apiserver" not in rendered(unknown)


@pytest.mark.parametrize(("manager", "ours"), [("gardener-operator", True), ("kubectl", False)])
def test_only_a_policy_that_the_operator_wrote_may_be_deleted(manager: str, *, ours: bool) -> None:
    live = {"metadata": {"name": "deny-all", "managedFields": [{"manager": manager}]}}
    assert has_manager(live, "gardener-operator") is ours


def test_a_policy_without_managed_fields_is_not_ours() -> None:
    assert not has_manager({"metadata": {"name": "deny-all"}}, "gardener-operator")
