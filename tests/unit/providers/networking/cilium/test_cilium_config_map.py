"""The settings of agents: spec 40 §6.3, §6.6 and §6.7."""

import re

import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.networking.cilium import NetworkConfig
from pergola.providers.networking.cilium.api_server import ApiServer
from pergola.providers.networking.cilium.config_map import config
from pergola.providers.networking.cilium.ipam import Ipam
from pergola.providers.networking.cilium.values import values
from tests.support.cilium_plans import (
    HOST,
    PODS,
    PODS_IPV6,
    cilium_config,
    cilium_plan,
    cilium_shoot,
)

IPV4 = ("IPv4",)
IPV6 = ("IPv6",)
BOTH = ("IPv4", "IPv6")


def keys(
    fields: JsonObject | None = None,
    shoot: Shoot | None = None,
    families: tuple[str, ...] = IPV4,
    state: JsonObject | None = None,
) -> dict[str, str]:
    desired = cilium_config(**(fields or {}))
    plan = cilium_plan(desired, shoot, families=families)
    return config(values(plan, Ipam.from_state(state or {})))


def some(found: dict[str, str], names: str) -> dict[str, str]:
    return {name: found[name] for name in names.split() if name in found}


# §6.7, in the order of the table


@pytest.mark.parametrize(
    ("fields", "routing", "native", "direct"),
    [
        ({}, ("tunnel", "vxlan"), None, "false"),
        ({"overlay": {"enabled": True}}, ("tunnel", "vxlan"), None, "false"),
        (
            {"overlay": {"enabled": True}, "tunnel": "geneve"},
            ("tunnel", "geneve"),
            None,
            "false",
        ),
        ({"overlay": {"enabled": False}}, ("native", None), PODS, "false"),
        (
            {"overlay": {"enabled": False, "createPodRoutes": True}},
            ("native", None),
            PODS,
            "true",
        ),
    ],
)
def test_the_overlay_selects_the_routing_mode(
    fields: JsonObject, routing: tuple[str, str | None], native: str | None, direct: str
) -> None:
    found = keys(fields)

    assert (found["routing-mode"], found.get("tunnel-protocol")) == routing
    assert found.get("ipv4-native-routing-cidr") == native
    assert found["auto-direct-node-routes"] == direct
    assert found["enable-bpf-masquerade"] == "true"


@pytest.mark.parametrize("option", ["snatToUpstreamDNS", "snatOutOfCluster"])
def test_an_snat_sidecar_replaces_masquerading_by_ebpf(option: str) -> None:
    before, after = keys(), keys({option: {"enabled": True}})

    assert before.pop("enable-bpf-masquerade") == "true"
    assert after == before


def test_without_kube_proxy_agents_replace_it() -> None:
    found = keys(shoot=cilium_shoot(kube_proxy=False))

    assert found["kube-proxy-replacement"] == "true"
    assert found["kube-proxy-replacement-healthz-bind-address"] == "0.0.0.0:10256"
    assert found["enable-health-check-nodeport"] == "true"
    assert found["enable-health-check-loadbalancer-ip"] == "true"


def test_with_kube_proxy_agents_do_not_replace_it() -> None:
    for shoot in (cilium_shoot(kube_proxy=True), Shoot({})):
        found = keys(shoot=shoot)

        assert not [key for key in found if key.startswith("kube-proxy")]
        assert found["enable-health-check-nodeport"] == "false"
        assert found["enable-health-check-loadbalancer-ip"] == "false"


# §6.3


@pytest.mark.parametrize("tunnel", ["vxlan", "geneve", "disabled"])
def test_without_an_overlay_routing_is_native_whatever_the_tunnel(tunnel: str) -> None:
    found = keys({"overlay": {"enabled": False}, "tunnel": tunnel})

    assert found["routing-mode"] == "native"
    assert found["ipv4-native-routing-cidr"] == PODS
    assert "tunnel-protocol" not in found


def test_an_overlay_needs_a_tunnel_and_no_native_range() -> None:
    fields = {"overlay": {"enabled": True}, "tunnel": "disabled"}

    found = keys({**fields, "ipv4NativeRoutingCIDREnabled": True})

    assert found["tunnel-protocol"] == "vxlan"
    assert "ipv4-native-routing-cidr" not in found


def test_without_an_overlay_setting_configured_values_are_used() -> None:
    found = keys({"tunnel": "geneve", "ipv4NativeRoutingCIDREnabled": True})

    assert found["tunnel-protocol"] == "geneve"
    assert found["ipv4-native-routing-cidr"] == PODS


def test_native_ranges_are_those_of_the_families_in_use() -> None:
    fields = {"overlay": {"enabled": False}}
    names = "ipv4-native-routing-cidr ipv6-native-routing-cidr"

    assert some(keys(fields, families=IPV4), names) == {"ipv4-native-routing-cidr": PODS}
    assert some(keys(fields, families=IPV6), names) == {"ipv6-native-routing-cidr": PODS_IPV6}
    assert some(keys(fields, families=BOTH), names) == {
        "ipv4-native-routing-cidr": PODS,
        "ipv6-native-routing-cidr": PODS_IPV6,
    }


def test_a_native_range_that_is_not_reported_yet_is_a_retryable_error() -> None:
    plan = cilium_plan(
        cilium_config(overlay={"enabled": False}), cilium_shoot(ipv6=False), families=BOTH
    )

    with pytest.raises(ExtensionError, match=r"^status\.networking\.pods: ") as raised:
        values(plan, Ipam())

    assert raised.value.codes == (Code.RETRYABLE_CONFIGURATION_PROBLEM,)


@pytest.mark.parametrize(
    ("families", "expected"),
    [
        (IPV4, {"enable-ipv4": "true", "enable-ipv6": "false"}),
        (IPV6, {"enable-ipv4": "false", "enable-ipv6": "true"}),
        (BOTH, {"enable-ipv4": "true", "enable-ipv6": "true"}),
    ],
)
def test_ip_families_override_the_config(
    families: tuple[str, ...], expected: dict[str, str]
) -> None:
    opposite = {"ipv4": {"enabled": "IPv4" not in families}}

    assert some(keys(opposite, families=families), " ".join(expected)) == expected


@pytest.mark.parametrize(
    ("families", "required"),
    [
        (IPV4, {"k8s-require-ipv4-pod-cidr"}),
        (IPV6, {"k8s-require-ipv6-pod-cidr"}),
        (BOTH, {"k8s-require-ipv4-pod-cidr", "k8s-require-ipv6-pod-cidr"}),
    ],
)
def test_kubernetes_assigns_pod_ranges_of_all_families(
    families: tuple[str, ...], required: set[str]
) -> None:
    found = keys(families=families)

    assert found["ipam"] == "kubernetes"
    assert {key for key in found if key.startswith("k8s-require")} == required


def test_the_initial_ipam_mode_is_kept() -> None:
    state = {"ipam": {"mode": "cluster-pool", "pool": {"cluster-pool-ipv4-mask-size": "26"}}}

    found = keys(state=state)

    assert found["ipam"] == "cluster-pool"
    assert found["cluster-pool-ipv4-cidr"] == PODS
    assert found["cluster-pool-ipv4-mask-size"] == "26"
    assert not [key for key in found if key.startswith("k8s-require")]


def api_server(fields: JsonObject, shoot: Shoot) -> ApiServer | None:
    return values(cilium_plan(cilium_config(**fields), shoot), Ipam()).api_server


def test_agents_use_the_configured_address_of_the_api_server() -> None:
    fields = {"kubeproxy": {"k8sServiceHost": "10.1.2.3", "k8sServicePort": 6443}}

    assert api_server(fields, cilium_shoot(kube_proxy=False)) == ApiServer("10.1.2.3", 6443)
    assert api_server(fields, cilium_shoot(kube_proxy=True)) is None


@pytest.mark.parametrize("fields", [{}, {"kubeproxy": {"k8sServiceHost": "10.1.2.3"}}])
def test_agents_use_the_external_address_by_default(fields: JsonObject) -> None:
    shoot = cilium_shoot(kube_proxy=False)

    assert api_server(fields, shoot) == ApiServer(HOST, 443)


def test_a_port_in_the_external_address_is_used() -> None:
    shoot = cilium_shoot(kube_proxy=False, external=f"https://{HOST}:8443")

    assert api_server({}, shoot) == ApiServer(HOST, 8443)


@pytest.mark.parametrize(
    ("shoot", "reason"),
    [
        (cilium_shoot(kube_proxy=False, external=None), "external address not found among"),
        (
            Shoot({"spec": {"kubernetes": {"kubeProxy": {"enabled": False}}}}),
            "advertised addresses missing in shoot status",
        ),
        (cilium_shoot(kube_proxy=False, external="https://"), "has no host"),
    ],
)
def test_a_missing_host_is_an_error_without_kube_proxy(shoot: Shoot, reason: str) -> None:
    text = "required kubernetes service host missing while running without kube-proxy: "

    with pytest.raises(ExtensionError, match=f"^{re.escape(text)}.*{re.escape(reason)}"):
        api_server({}, shoot)


def test_node_local_dns_needs_redirection() -> None:
    names = "enable-local-redirect-policy bpf-lb-sock"

    assert some(keys(), names) == {
        "enable-local-redirect-policy": "false",
        "bpf-lb-sock": "false",
    }
    assert some(keys(shoot=cilium_shoot(node_local_dns=True)), names) == {
        "enable-local-redirect-policy": "true",
        "bpf-lb-sock": "true",
    }
    without_proxy = cilium_shoot(kube_proxy=False, node_local_dns=True)
    assert some(keys(shoot=without_proxy), names) == {
        "enable-local-redirect-policy": "true",
        "bpf-lb-sock": "false",
    }


@pytest.mark.parametrize(("least", "is_ha"), [(0, False), (1, False), (2, True), (9, True)])
def test_the_number_of_operator_replicas_follows_the_nodes(least: int, is_ha: bool) -> None:
    plan = cilium_plan(shoot=cilium_shoot(least_workers=least))

    assert values(plan, Ipam()).operator_is_ha is is_ha


@pytest.mark.parametrize(
    ("fields", "nodes", "allows"),
    [
        ({}, "10.250.0.0/16", "true"),
        ({"overlay": {"enabled": False}}, "10.250.0.0/16", "false"),
        ({"overlay": {"enabled": False}}, "100.100.0.0/16", "true"),
    ],
)
def test_strict_encryption_looks_up_identities_with_overlapping_ranges(
    fields: JsonObject, nodes: str, allows: str
) -> None:
    encryption = {"enabled": True, "mode": "wireguard", "strictMode": True}
    shoot = cilium_shoot()
    shoot.raw["spec"]["networking"]["nodes"] = nodes

    found = keys({"encryption": encryption, **fields}, shoot)

    assert found["enable-wireguard"] == "true"
    assert found["enable-encryption-strict-mode"] == "true"
    assert found["encryption-strict-mode-cidr"] == PODS
    assert found["encryption-strict-mode-allow-remote-node-identities"] == allows
    assert found["enable-encryption-strict-mode-egress"] == "true"
    assert found["encryption-strict-egress-cidr"] == PODS
    assert found["encryption-strict-egress-allow-remote-node-identities"] == allows


# §6.6, in its order; and the defaults of §6.1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"identity-allocation-mode": "crd", "debug": "false", "enable-policy": "default"}),
        ({"debug": True}, {"debug": "true"}),
        ({}, {"enable-ipv4-masquerade": "true", "enable-ipv6-masquerade": "false"}),
        (
            {"enableIpv4Masquerade": False},
            {"enable-ipv4-masquerade": "false", "enable-bpf-masquerade": "false"},
        ),
        ({"enableBPFMasquerade": False}, {"enable-bpf-masquerade": "false"}),
        ({}, {"node-port-bind-protection": "false", "bpf-lb-mode": "snat"}),
        ({"loadBalancingMode": "hybrid"}, {"bpf-lb-mode": "hybrid"}),
        ({}, {"enable-ipv4-egress-gateway": "false", "enable-wireguard": "false"}),
        ({"egressGateway": {"enabled": True}}, {"enable-ipv4-egress-gateway": "true"}),
        ({"egressGateway": {"enabled": True}}, {"enable-egress-gateway": "true"}),
        (
            {"encryption": {"enabled": True, "mode": "wireguard", "nodeToNodeEnabled": True}},
            {"enable-wireguard": "true", "encrypt-node": "true"},
        ),
        ({}, {"enable-bgp-control-plane": "false", "enable-l2-announcements": "false"}),
        ({"bgpControlPlane": {"enabled": True}}, {"enable-bgp-control-plane": "true"}),
        (
            {"l2Announcements": {"enabled": True}},
            {
                "enable-l2-announcements": "true",
                "l2-announcements-lease-duration": "15s",
                "l2-announcements-renew-deadline": "5s",
                "l2-announcements-retry-period": "2s",
            },
        ),
        (
            {"l2Announcements": {"enabled": True, "leaseDuration": "1m"}},
            {"l2-announcements-lease-duration": "1m0s"},
        ),
        ({}, {"mtu": "0", "policy-audit-mode": "false"}),
        (
            {"mtu": 1400, "devices": ["eth0", "eth1"], "directRoutingDevice": "eth0"},
            {"mtu": "1400", "devices": "eth0 eth1", "direct-routing-device": "eth0"},
        ),
        ({"policyAuditMode": True}, {"policy-audit-mode": "true"}),
        (
            {},
            {
                "enable-hubble": "false",
                "hubble-listen-address": ":4244",
                "hubble-metrics-server": ":9091",
            },
        ),
        ({"hubble": {"enabled": True}}, {"enable-hubble": "true", "hubble-disable-tls": "false"}),
        ({}, {"cni-exclusive": "true"}),
        ({"cni": {"exclusive": True}}, {"cni-exclusive": "true"}),
        ({"cni": {"exclusive": False}}, {"cni-exclusive": "false"}),
        ({"cni": {}}, {"cni-exclusive": "false"}),
        ({}, {"write-cni-conf-when-ready": "/host/etc/cni/net.d/05-cilium.conflist"}),
        ({"bpfSocketLBHostnsOnly": {"enabled": True}}, {"bpf-lb-sock-hostns-only": "true"}),
    ],
)
def test_each_key_follows_its_config_field(fields: JsonObject, expected: dict[str, str]) -> None:
    assert some(keys(fields), " ".join(expected)) == expected


@pytest.mark.parametrize(
    "key",
    [
        "devices",
        "direct-routing-device",
        "bpf-lb-sock-hostns-only",
        "encrypt-node",
        "enable-encryption-strict-mode",
        "l2-announcements-lease-duration",
        "hubble-metrics",
    ],
)
def test_keys_of_disabled_features_are_absent(key: str) -> None:
    assert key not in keys()


def test_disabled_families_are_not_masqueraded() -> None:
    fields = {"enableIpv4Masquerade": True, "enableIpv6Masquerade": True}

    ipv6, ipv4 = keys(fields, families=IPV6), keys(fields, families=IPV4)

    assert (ipv6["enable-ipv4-masquerade"], ipv6["enable-ipv6-masquerade"]) == ("false", "true")
    assert (ipv4["enable-ipv4-masquerade"], ipv4["enable-ipv6-masquerade"]) == ("true", "false")
    assert "enable-bpf-masquerade" not in ipv6


def test_an_ipv6_only_cluster_listens_to_ipv6() -> None:
    found = keys(shoot=cilium_shoot(kube_proxy=False), families=IPV6)

    assert found["kube-proxy-replacement-healthz-bind-address"] == "[::]:10256"
    assert found["operator-api-serve-addr"] == "[::1]:9234"


def test_every_value_is_text_and_keys_are_sorted() -> None:
    found = keys({"hubble": {"enabled": True}}, families=BOTH)

    assert list(found) == sorted(found)
    assert all(found.values())
    assert {type(value) for value in found.values()} == {str}


MAPS: dict[str, str] = {
    "bpf-ct-global-any-max": "262144",
    "bpf-ct-global-tcp-max": "524288",
    "bpf-policy-map-max": "65536",
    "enable-service-topology": "true",
    "monitor-aggregation": "medium",
    "preallocate-bpf-maps": "false",
}


def test_map_sizes_and_aggregation_match_the_original() -> None:
    assert some(keys(), " ".join(MAPS)) == MAPS


def test_an_empty_config_has_the_defaults() -> None:
    assert keys() == config(values(cilium_plan(NetworkConfig()), Ipam()))
