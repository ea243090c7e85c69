"""The meaning of Calico's config, row by row (spec 40 §5.3, §5.4, §5.6)."""

import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.provider_config import read_strict
from pergola.providers.networking.calico import Calico, FeatureGates, NetworkConfig
from pergola.providers.networking.calico.advice import advice
from pergola.providers.networking.calico.values import Ipam, Pool, Values, compute
from pergola.providers.networking.plugin import Plan

V4 = ("IPv4",)
V6 = ("IPv6",)
DUAL = ("IPv4", "IPv6")
SHOOT: JsonObject = {
    "spec": {"networking": {"pods": "100.244.0.0/16", "nodes": "10.250.0.0/16"}},
    "status": {"networking": {"pods": ["100.244.0.0/16", "2001:db8:1::/112"]}},
}


def plan(
    config: JsonObject | None = None,
    families: tuple[str, ...] = V4,
    shoot: JsonObject | None = None,
) -> Plan[NetworkConfig]:
    return Plan(
        config=read_strict(NetworkConfig, config or {}, Calico.config_gvk()),
        pod_range="100.244.0.0/16" if "IPv4" in families else "2001:db8:1::/112",
        service_range="100.32.0.0/13",
        families=families,
        shoot=Shoot(SHOOT if shoot is None else shoot),
        namespace="shoot--project--name",
    )


def values(
    config: JsonObject | None = None,
    families: tuple[str, ...] = V4,
    shoot: JsonObject | None = None,
) -> Values:
    return compute(plan(config, families, shoot))


def ipv4(computed: Values) -> Pool:
    assert computed.ipv4 is not None
    return computed.ipv4


def ipv6(computed: Values) -> Pool:
    assert computed.ipv6 is not None
    return computed.ipv6


OFF: JsonObject = {"overlay": {"enabled": False}}
ON: JsonObject = {"overlay": {"enabled": True}}
VXLAN: JsonObject = {"vxlan": {"enabled": True}}
ON_VXLAN: JsonObject = ON | VXLAN
ROUTES: JsonObject = {"overlay": {"enabled": False, "createPodRoutes": True}}


@pytest.mark.parametrize(
    ("config", "backend", "felix_ipip", "pool", "mode", "ipam"),
    [
        ({}, "bird", True, "ipip", "Always", "host-local"),
        (ON, "bird", True, "ipip", "Always", "host-local"),
        (ON_VXLAN, "vxlan", True, "vxlan", "Always", "calico-ipam"),
        (OFF, "none", False, "ipip", "Never", "host-local"),
        (ROUTES, "bird", False, "ipip", "Never", "host-local"),
        (VXLAN, "bird", True, "vxlan", "Always", "calico-ipam"),
        (VXLAN | OFF, "none", False, "vxlan", "Never", "calico-ipam"),
        (VXLAN | ROUTES, "bird", False, "vxlan", "Never", "calico-ipam"),
        (VXLAN | {"backend": "none"}, "none", False, "vxlan", "Always", "calico-ipam"),
        ({"overlay": {"createPodRoutes": True}}, "bird", False, "ipip", "Never", "host-local"),
        ({"backend": "none"}, "none", False, "ipip", "Never", "host-local"),
    ],
)
def test_the_options_matrix_of_ipv4(
    config: JsonObject, backend: str, *, felix_ipip: bool, pool: str, mode: str, ipam: str
) -> None:
    computed = values(config)

    assert computed.backend == backend
    assert computed.felix_ipip is felix_ipip
    assert (ipv4(computed).encapsulation, ipv4(computed).mode) == (pool, mode)
    assert computed.ipam.type == ipam


@pytest.mark.parametrize("families", [V6, DUAL])
def test_with_ipv6_the_overlay_is_off_by_default(families: tuple[str, ...]) -> None:
    computed = values({}, families)

    assert computed.backend == "none"
    assert not computed.felix_ipip
    assert ipv6(computed).mode == "Never"
    assert not computed.kube_controllers


@pytest.mark.parametrize(
    ("config", "runs"), [({}, True), (OFF, False), (ROUTES, True), ({"backend": "none"}, False)]
)
def test_kube_controllers_run_unless_the_backend_is_none(config: JsonObject, *, runs: bool) -> None:
    assert values(config).kube_controllers is runs


@pytest.mark.parametrize(
    ("config", "snat"),
    [
        ({}, False),
        (ON, False),
        (OFF, True),
        ({**OFF, "snatToUpstreamDNS": {"enabled": False}}, False),
        ({**OFF, "snatToUpstreamDNS": {}}, False),
        ({"snatToUpstreamDNS": {"enabled": True}}, False),
    ],
)
def test_dns_uses_the_nodes_address_only_without_an_overlay(
    config: JsonObject, *, snat: bool
) -> None:
    assert values(config).snat_to_upstream_dns is snat


def test_the_overlay_overrides_the_configured_backend_and_mode() -> None:
    user = {"backend": "bird", "ipv4": {"mode": "CrossSubnet"}}

    assert values(user | OFF).backend == "none"
    assert ipv4(values(user | OFF)).mode == "Never"
    assert ipv4(values(user | ON)).mode == "Always"
    assert ipv4(values(user)).mode == "CrossSubnet"


def test_in_dual_stack_an_overlay_is_off_for_both_families() -> None:
    computed = values({"ipv4": {"mode": "Always"}} | OFF, DUAL)

    assert (ipv4(computed).mode, ipv6(computed).mode) == ("Never", "Never")
    assert not computed.felix_ipip


def test_dual_stack_can_have_an_overlay() -> None:
    computed = values(ON, DUAL)

    assert computed.backend == "bird"
    assert (ipv4(computed).mode, ipv6(computed).mode) == ("Always", "Always")


def test_the_deprecated_fields_have_no_effect() -> None:
    old = {"ipip": "CrossSubnet", "ipAutodetectionMethod": "first-found"}

    block: JsonObject = {"ipv4": {}}
    for more in ({}, block):
        assert values(old | more) == values(more)


@pytest.mark.parametrize("families", [V4, V6, DUAL])
@pytest.mark.parametrize(
    ("around", "name"),
    [
        *(({}, name) for name in ("typha", "ebpfDataplane", "overlay", "vxlan")),
        *(({}, name) for name in ("birdExporter", "multus")),
        (OFF, "snatToUpstreamDNS"),
    ],
)
def test_a_setting_without_enabled_is_off_as_in_go(
    around: JsonObject, name: str, families: tuple[str, ...]
) -> None:
    off = values({**around, name: {"enabled": False}}, families)
    for spelling in ({}, {"enabled": None}):
        assert values({**around, name: spelling}, families) == off


@pytest.mark.parametrize(
    ("config", "families", "ipam"),
    [
        ({}, V4, Ipam(type="host-local", subnet="usePodCidr")),
        ({}, V6, Ipam(type="host-local", subnet="usePodCidrIPv6")),
        ({}, DUAL, Ipam(type="host-local", ranges=("usePodCidrIPv6", "usePodCidr"))),
        ({"ipam": {"cidr": "USEPODCIDR"}}, V4, Ipam(type="host-local", subnet="usePodCidr")),
        ({"ipam": {"cidr": "usePodCIDR"}}, V6, Ipam(type="host-local", subnet="usePodCidrIPv6")),
        ({"ipam": {"cidr": "10.1.0.0/16"}}, V4, Ipam(type="host-local", subnet="10.1.0.0/16")),
        (
            {"ipam": {"cidr": "10.1.0.0/16"}},
            DUAL,
            Ipam(type="host-local", ranges=("usePodCidrIPv6", "usePodCidr")),
        ),
        ({"ipam": {"type": "calico-ipam", "cidr": "10.1.0.0/16"}}, V4, Ipam(type="calico-ipam")),
    ],
)
def test_addresses_come_from_the_ranges_of_the_families(
    config: JsonObject, families: tuple[str, ...], ipam: Ipam
) -> None:
    assert values(config, families).ipam == ipam


def networking(*, spec: str | None = None, status: list[str] | None = None) -> JsonObject:
    return {
        "spec": {"networking": {"nodes": spec}},
        "status": {"networking": {"nodes": status or [], "pods": ["2001:db8:1::/112"]}},
    }


@pytest.mark.parametrize(
    ("shoot", "v4", "v6"),
    [
        (networking(), None, None),
        (networking(spec="10.250.0.0/16"), "cidr=10.250.0.0/16", None),
        (
            networking(spec="10.0.0.0/8", status=["10.1.0.0/16", "2001:db8::/64", "10.2.0.0/16"]),
            "cidr=10.1.0.0/16,10.2.0.0/16",
            "cidr=2001:db8::/64",
        ),
        (networking(spec="10.0.0.0/8", status=["2001:db8::/64"]), None, "cidr=2001:db8::/64"),
    ],
)
def test_nodes_are_found_by_their_cidrs(shoot: JsonObject, v4: str | None, v6: str | None) -> None:
    computed = values({}, DUAL, shoot)

    assert ipv4(computed).auto_detection == v4
    assert ipv6(computed).auto_detection == v6


def test_a_configured_auto_detection_method_is_used() -> None:
    config = {
        "ipv4": {"autoDetectionMethod": "interface=eth0"},
        "ipv6": {"autoDetectionMethod": "cidr=2001:db8::/64,2001:db9::/64"},
    }
    shoot = networking(spec="10.0.0.0/8", status=["10.1.0.0/16", "2001:db8::/64"])

    computed = values(config, DUAL, shoot)

    assert ipv4(computed).auto_detection == "interface=eth0"
    assert ipv6(computed).auto_detection == "cidr=2001:db8::/64,2001:db9::/64"


def kube_proxy(**fields: object) -> JsonObject:
    return {"spec": {"kubernetes": {"kubeProxy": fields}}}


@pytest.mark.parametrize(
    ("shoot", "nftables"),
    [
        ({}, False),
        (kube_proxy(mode="IPTables"), False),
        (kube_proxy(enabled=True, mode="NFTables"), True),
        (kube_proxy(enabled=False), False),
    ],
)
def test_felix_uses_nftables_like_kube_proxy(shoot: JsonObject, *, nftables: bool) -> None:
    assert values({}, V4, shoot).nftables is nftables


def test_without_kube_proxy_nodes_find_the_api_server_by_its_external_address() -> None:
    shoot = kube_proxy(enabled=False) | {
        "status": {"advertisedAddresses": [{"name": "external", "url": "https://api.example.org"}]}
    }

    assert values({"ebpfDataplane": {"enabled": True}}, V4, shoot).api_server == (
        "api.example.org",
        443,
    )
    assert values({}, V4, SHOOT).api_server is None


@pytest.mark.parametrize(
    ("config", "nat"),
    [
        ({}, False),
        ({"wireguardEncryption": True}, True),
        ({"ipv6": {"sourceNATEnabled": True}}, True),
        ({"wireguardEncryption": True, "ipv6": {"sourceNATEnabled": False}}, False),
    ],
)
def test_masquerading_of_ipv6_follows_the_config(config: JsonObject, *, nat: bool) -> None:
    assert ipv6(values(config, V6)).nat_outgoing is nat


def test_calico_node_keeps_its_privileges_for_ebpf() -> None:
    gates = FeatureGates(non_privileged_calico_node=True)

    assert compute(plan({}), gates).non_privileged
    assert not compute(plan({"ebpfDataplane": {"enabled": True}}), gates).non_privileged


VPA: JsonObject = {"spec": {"kubernetes": {"verticalPodAutoscaler": {"enabled": True}}}}


@pytest.mark.parametrize(
    ("mode", "shoot", "effective"),
    [
        (None, VPA, "cluster-proportional"),
        ("vpa", VPA, "vpa"),
        ("vpa", {}, "cluster-proportional"),
        ("static", {}, "static"),
    ],
)
def test_autoscaling_falls_back_to_a_supported_mode(
    mode: str | None, shoot: JsonObject, effective: str
) -> None:
    config = {"autoScaling": {"mode": mode}} if mode else {}

    assert values(config, V4, shoot).auto_scaling == effective


def test_all_other_values_have_defaults() -> None:
    computed = values()

    assert computed.typha
    assert computed.veth_mtu == "0"
    assert not computed.ebpf
    assert not computed.bird_exporter
    assert not computed.multus
    assert not computed.multus_cni_plugins
    assert not computed.wireguard
    assert computed.service_loop_prevention is None


def test_the_ipv6_pod_range_is_the_first_reported_by_the_infrastructure() -> None:
    assert ipv6(values({}, DUAL)).cidr == "2001:db8:1::/112"
    assert ipv4(values({}, DUAL)).cidr == "100.244.0.0/16"
    assert ipv6(values({}, V6, {})).cidr == "2001:db8:1::/112"


def test_dual_stack_waits_for_the_range_of_ipv6_pods() -> None:
    with pytest.raises(ExtensionError, match="no IPv6 range of pods is known") as raised:
        values({}, DUAL, {})

    assert raised.value.codes == (Code.RETRYABLE_DEPENDENCIES,)


@pytest.mark.parametrize(
    ("config", "families", "word"),
    [
        ({"backend": "bird"} | OFF, V4, "backend"),
        ({"backend": "vxlan"}, V4, "backend"),
        ({"ipv4": {"mode": "Always"}} | OFF, V4, "ipv4.mode"),
        ({"backend": "none", "ipv4": {"mode": "Always"}}, V4, "ipv4.mode"),
        ({"ipv6": {"mode": "Always"}}, V6, "ipv6.mode"),
        ({"overlay": {"enabled": True, "createPodRoutes": True}}, V4, "overlay.createPodRoutes"),
        ({"snatToUpstreamDNS": {"enabled": True}}, V4, "snatToUpstreamDNS"),
        (VXLAN | OFF, V4, "vxlan.enabled"),
        ({"ipam": {"type": "host-local"}} | ON_VXLAN, V4, "ipam.type"),
        ({"ipv4": {"pool": "ipip"}} | ON_VXLAN, V4, "ipv4.pool"),
        ({"multus": {"installCNIPlugins": True}}, V4, "multus.installCNIPlugins"),
        ({"ipam": {"cidr": "10.0.0.0/8"}}, DUAL, "ipam.cidr"),
        ({"autoScaling": {"mode": "vpa"}}, V4, "autoScaling.mode"),
        ({"autoScaling": {"resources": {"node": {"cpu": 1}}}}, V4, "autoScaling.resources"),
        ({"ipip": "Always"}, V4, "ipip"),
        ({"ipAutodetectionMethod": "first-found"}, V4, "ipAutodetectionMethod"),
    ],
)
def test_conflicting_settings_are_warnings(
    config: JsonObject, families: tuple[str, ...], word: str
) -> None:
    assert any(word in sentence for sentence in advice(plan(config, families)))


@pytest.mark.parametrize("families", [V4, V6, DUAL])
@pytest.mark.parametrize("config", [{}, ON, OFF, ON_VXLAN, ROUTES])
def test_settings_without_conflicts_have_no_warnings(
    config: JsonObject, families: tuple[str, ...]
) -> None:
    assert list(advice(plan(config, families))) == []
