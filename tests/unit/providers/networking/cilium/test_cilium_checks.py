"""The fields of spec 40 §6.1 in the order of its table, and other configs that no agent can run."""

import pytest

from pergola.api.field_errors import Cause
from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.extensions.provider_config import read_strict
from pergola.providers.networking.cilium import NETWORK_CONFIG, NetworkConfig
from pergola.providers.networking.cilium.advice import advice
from pergola.providers.networking.cilium.checks import check, check_shoot
from tests.support.cilium_plans import cilium_config, cilium_shoot

IPV4 = ("IPv4",)
IPV6 = ("IPv6",)
EVERYTHING: JsonObject = {
    "apiVersion": "cilium.networking.extensions.gardener.cloud/v1alpha1",
    "kind": "NetworkConfig",
    "debug": True,
    "kubeproxy": {"k8sServiceHost": "api.example.org", "k8sServicePort": 443},
    "hubble": {"enabled": True},
    "tunnel": "geneve",
    "store": "kubernetes",
    "ipv4": {"enabled": True},
    "ipv6": {"enabled": False},
    "bpfSocketLBHostnsOnly": {"enabled": True},
    "cni": {"exclusive": False},
    "egressGateway": {"enabled": True},
    "mtu": 1400,
    "devices": ["eth0", "ens+"],
    "directRoutingDevice": "eth0",
    "loadBalancingMode": "hybrid",
    "l2Announcements": {
        "enabled": True,
        "leaseDuration": "20s",
        "leaseRenewDeadline": "10s",
        "leaseRetryPeriod": "1500ms",
    },
    "ipv4NativeRoutingCIDREnabled": False,
    "ipv6NativeRoutingCIDREnabled": False,
    "overlay": {"enabled": True, "createPodRoutes": False},
    "snatToUpstreamDNS": {"enabled": False},
    "snatOutOfCluster": {"enabled": False},
    "enableIpv4Masquerade": True,
    "enableIpv6Masquerade": False,
    "enableBPFMasquerade": True,
    "bgpControlPlane": {"enabled": True},
    "policyAuditMode": True,
    "encryption": {
        "enabled": True,
        "mode": "wireguard",
        "nodeToNodeEnabled": True,
        "strictMode": True,
    },
}


def test_a_config_with_every_field_is_valid() -> None:
    config = read_strict(NetworkConfig, EVERYTHING, NETWORK_CONFIG)

    assert not list(check(config, IPV4))
    assert config.devices == ["eth0", "ens+"]
    assert config.enable_bpf_masquerade is True
    assert config.bpf_socket_lb_hostns_only is not None


def test_an_empty_config_is_valid() -> None:
    assert read_strict(NetworkConfig, None, NETWORK_CONFIG) == NetworkConfig()
    assert not list(check(NetworkConfig(), IPV4))


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"hubble": {"enabled": "yes"}}, "spec.providerConfig.hubble.enabled"),
        ({"tunel": "vxlan"}, "spec.providerConfig.tunel"),
        ({"mtu": "1400"}, "spec.providerConfig.mtu"),
        ({"l2Announcements": {"leaseDuration": "15"}}, "spec.providerConfig.l2Announcements"),
        (
            {"kind": "NetworkConfig", "apiVersion": "calico.networking.extensions.gardener.cloud"},
            "spec.providerConfig.apiVersion",
        ),
    ],
)
def test_an_invalid_config_is_refused_with_its_path(config: JsonObject, path: str) -> None:
    with pytest.raises(Malformed, match=path.replace(".", r"\.")):
        read_strict(NetworkConfig, config, NETWORK_CONFIG)


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"kubeproxy": {"k8sServiceHost": "Not A Host"}}, "kubeproxy.k8sServiceHost"),
        ({"kubeproxy": {"k8sServiceHost": "-a.example.org"}}, "kubeproxy.k8sServiceHost"),
        ({"kubeproxy": {"k8sServicePort": 0}}, "kubeproxy.k8sServicePort"),
        ({"kubeproxy": {"k8sServicePort": 65536}}, "kubeproxy.k8sServicePort"),
        ({"mtu": -1}, "mtu"),
        ({"devices": ["eth0", "a" * 16]}, "devices[1]"),
        ({"devices": [""]}, "devices[0]"),
        ({"devices": ["eth 0"]}, "devices[0]"),
        ({"devices": ["a/b"]}, "devices[0]"),
        ({"devices": [".."]}, "devices[0]"),
        ({"directRoutingDevice": "a" * 16}, "directRoutingDevice"),
        ({"l2Announcements": {"enabled": True, "leaseDuration": "-1s"}}, "l2Announcements"),
        ({"l2Announcements": {"enabled": True, "leaseDuration": "5s"}}, "l2Announcements"),
        ({"l2Announcements": {"enabled": True, "leaseRetryPeriod": "5s"}}, "l2Announcements"),
        ({"encryption": {"enabled": True, "mode": "ipsec"}}, "encryption.mode"),
    ],
)
def test_a_wrong_value_is_invalid_at_its_path(config: JsonObject, path: str) -> None:
    findings = list(check(cilium_config(**config), IPV4))

    assert findings
    for finding in findings:
        assert finding.reason == "FieldValueInvalid"
        assert finding.field.startswith(path)


@pytest.mark.parametrize(
    ("field", "supported"),
    [
        ("tunnel", "vxlan, geneve, disabled"),
        ("store", "kubernetes"),
        ("loadBalancingMode", "snat, dsr, hybrid"),
    ],
)
def test_an_unsupported_value_is_reported_with_the_others(field: str, supported: str) -> None:
    (finding,) = check(cilium_config(**{field: "x"}), IPV4)

    assert finding == Cause(
        "FieldValueInvalid",
        f'Invalid value: "x": unsupported value "x" for {field}, supported values are'
        f" [{supported}]",
        field,
    )


@pytest.mark.parametrize("host", ["10.0.0.1", "2001:db8::1", "api.example.org", "localhost"])
def test_a_host_may_be_an_address_or_a_name(host: str) -> None:
    config = cilium_config(kubeproxy={"k8sServiceHost": host, "k8sServicePort": 6443})

    assert not list(check(config, IPV4))


def test_encryption_needs_a_mode() -> None:
    (finding,) = check(cilium_config(encryption={"enabled": True}), IPV4)

    assert (finding.reason, finding.field) == ("FieldValueRequired", "encryption.mode")


def test_disabled_encryption_is_not_validated() -> None:
    off = {"enabled": False, "mode": "ipsec", "strictMode": True}

    assert not list(check(cilium_config(encryption=off), IPV4))


def test_strict_encryption_needs_ipv4() -> None:
    config = cilium_config(encryption={"enabled": True, "mode": "wireguard", "strictMode": True})

    assert [f.field for f in check(config, IPV6)] == ["encryption.strictMode"]
    assert not list(check(config, ("IPv6", "IPv4")))


@pytest.mark.parametrize(
    ("config", "families", "is_right"),
    [
        ({}, IPV4, False),
        ({"overlay": {"enabled": True}}, IPV4, False),
        ({"overlay": {"enabled": False}}, IPV4, True),
        ({"overlay": {"enabled": False}}, IPV6, False),
        ({"tunnel": "disabled"}, IPV4, True),
        ({"ipv4NativeRoutingCIDREnabled": True}, IPV4, True),
        ({"tunnel": "disabled", "ipv4NativeRoutingCIDREnabled": False}, IPV4, False),
    ],
)
def test_dsr_needs_an_ipv4_native_range(
    config: JsonObject, families: tuple[str, ...], is_right: bool
) -> None:
    found = list(check(cilium_config(loadBalancingMode="dsr", **config), families))

    assert [f.field for f in found] == ([] if is_right else ["loadBalancingMode"])


@pytest.mark.parametrize("config", [{"overlay": {"enabled": False}}, {"tunnel": "disabled"}])
def test_an_egress_gateway_needs_an_overlay(config: JsonObject) -> None:
    (finding,) = check(cilium_config(egressGateway={"enabled": True}, **config), IPV4)

    assert finding.field == "egressGateway.enabled"
    assert "cilium must run with an overlay network" in finding.message


@pytest.mark.parametrize(
    "config",
    [
        {"enableBPFMasquerade": False},
        {"enableIpv4Masquerade": False},
        {"snatOutOfCluster": {"enabled": True}},
    ],
)
def test_an_egress_gateway_needs_masquerading_by_ebpf(config: JsonObject) -> None:
    found = check(cilium_config(egressGateway={"enabled": True}, **config), IPV4)

    assert [f.field for f in found] == ["egressGateway.enabled"]


def test_an_egress_gateway_needs_a_shoot_without_kube_proxy() -> None:
    config = cilium_config(egressGateway={"enabled": True})

    (finding,) = check_shoot(config, cilium_shoot(kube_proxy=True))

    assert finding.field == "spec.networking.providerConfig.egressGateway.enabled"
    assert "kubeProxyReplacement must be enabled" in finding.message
    assert not list(check_shoot(config, cilium_shoot(kube_proxy=False)))


@pytest.mark.parametrize(
    ("kube_proxy", "mode", "node_local_dns", "is_right"),
    [
        (True, "IPVS", True, False),
        (True, "IPTables", True, True),
        (True, "IPVS", False, True),
        (False, "IPVS", True, True),
    ],
)
def test_node_local_dns_does_not_work_with_kube_proxy_in_mode_ipvs(
    kube_proxy: bool, mode: str, node_local_dns: bool, is_right: bool
) -> None:
    shoot = cilium_shoot(kube_proxy=kube_proxy, mode=mode, node_local_dns=node_local_dns)

    found = list(check_shoot(NetworkConfig(), shoot))

    assert [f.field for f in found] == ([] if is_right else ["spec.kubernetes.kubeProxy.mode"])
    assert all(f.reason == "FieldValueForbidden" for f in found)


@pytest.mark.parametrize(
    ("config", "families", "kube_proxy", "field"),
    [
        ({"overlay": {"enabled": True}, "tunnel": "disabled"}, IPV4, True, "tunnel"),
        ({"overlay": {"enabled": False}, "tunnel": "vxlan"}, IPV4, True, "tunnel"),
        (
            {"overlay": {"enabled": True, "createPodRoutes": True}},
            IPV4,
            True,
            "overlay.createPodRoutes",
        ),
        (
            {"overlay": {"enabled": True}, "ipv4NativeRoutingCIDREnabled": True},
            IPV4,
            True,
            "ipv4NativeRoutingCIDREnabled",
        ),
        ({"ipv4": {"enabled": False}}, IPV4, True, "ipv4.enabled"),
        ({"ipv6": {"enabled": True}}, IPV4, True, "ipv6.enabled"),
        (
            {"tunnel": "disabled", "ipv4NativeRoutingCIDREnabled": False},
            IPV4,
            True,
            "ipv4NativeRoutingCIDREnabled",
        ),
        ({"loadBalancingMode": "hybrid"}, IPV4, True, "loadBalancingMode"),
        ({"kubeproxy": {"k8sServiceHost": "a"}}, IPV4, False, "kubeproxy"),
        (
            {"kubeproxy": {"k8sServiceHost": "a", "k8sServicePort": 1}},
            IPV4,
            True,
            "kubeproxy",
        ),
        (
            {"snatOutOfCluster": {"enabled": True}, "enableBPFMasquerade": True},
            IPV4,
            True,
            "enableBPFMasquerade",
        ),
        (
            {"enableIpv4Masquerade": False, "enableBPFMasquerade": True},
            IPV4,
            True,
            "enableBPFMasquerade",
        ),
        ({"encryption": {"mode": "wireguard"}}, IPV4, True, "encryption.mode"),
    ],
)
def test_an_overridden_value_is_a_warning(
    config: JsonObject, families: tuple[str, ...], kube_proxy: bool, field: str
) -> None:
    found = list(advice(cilium_config(**config), families, cilium_shoot(kube_proxy=kube_proxy)))

    assert [text.partition(":")[0] for text in found] == [field]


@pytest.mark.parametrize("kube_proxy", [True, False])
def test_an_empty_config_has_no_warnings(kube_proxy: bool) -> None:
    assert not list(advice(NetworkConfig(), IPV4, cilium_shoot(kube_proxy=kube_proxy)))
