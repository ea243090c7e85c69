"""Validation of Calico's config, row by row (spec 40 §5.1, §5.2, Beyond 10 and 11)."""

import pytest

from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.providers.networking.calico import Calico, NetworkConfig
from pergola.providers.networking.calico.checks import check, check_shoot

V4 = ("IPv4",)
V6 = ("IPv6",)
DUAL = ("IPv4", "IPv6")


def decoded(value: JsonObject) -> NetworkConfig:
    return read_strict(NetworkConfig, value, Calico.config_gvk())


def fields(value: JsonObject, families: tuple[str, ...] = V4) -> list[str]:
    return [cause.field for cause in check(decoded(value), families)]


def test_the_example_of_the_seed_is_accepted() -> None:
    example = {
        "apiVersion": "calico.networking.extensions.gardener.cloud/v1alpha1",
        "kind": "NetworkConfig",
        "backend": "bird",
        "ipam": {"cidr": "usePodCIDR", "type": "host-local"},
    }

    assert fields(example) == []


def test_a_config_without_a_type_is_read_as_calico_config() -> None:
    assert fields({"overlay": {"enabled": False}}) == []


@pytest.mark.parametrize(
    "value",
    [
        {"apiVersion": "cilium.networking.extensions.gardener.cloud/v1alpha1"},
        {"kind": "NetworkStatus"},
        {"bakcend": "bird"},
        {"ipam": {"typ": "host-local"}},
        {"typha": {"enabled": "yes"}},
        {"autoScaling": {"resources": {"node": {"cpu": "much"}}}},
        {"vethMTU": 1440},
        {"wireguardEncryption": "yes"},
        {"ipv4": {"mode": True}},
    ],
)
def test_a_config_of_another_kind_is_not_read(value: JsonObject) -> None:
    with pytest.raises(Malformed):
        decoded(value)


ALLOWED: list[tuple[JsonObject, tuple[str, ...]]] = [
    *[({"backend": backend}, V4) for backend in ("bird", "none", "vxlan")],
    *[({"ipam": {"type": kind}}, V4) for kind in ("host-local", "calico-ipam")],
    *[({"ipam": {"cidr": cidr}}, V4) for cidr in ("usePodCIDR", "USEPODCIDR", "10.0.0.0/8")],
    *[({"ipv4": {"pool": pool}}, V4) for pool in ("ipip", "vxlan")],
    *[({"ipv4": {"mode": mode}}, V4) for mode in ("Always", "Never", "CrossSubnet", "Off")],
    *[({"ipv4": {"pool": "vxlan", "mode": mode}}, V4) for mode in ("Always", "Never")],
    *[({"ipv6": {"mode": mode}}, V6) for mode in ("Always", "Never", "CrossSubnet")],
    ({"ipv6": {"pool": "vxlan", "sourceNATEnabled": True}}, V6),
    *[({"typha": {"enabled": enabled}}, V4) for enabled in (True, False)],
    *[({"vethMTU": mtu}, V4) for mtu in ("0", "1440")],
    ({"ebpfDataplane": {"enabled": True}}, V4),
    ({"overlay": {"enabled": False, "createPodRoutes": True}}, V4),
    ({"snatToUpstreamDNS": {"enabled": False}}, V4),
    *[({"autoScaling": {"mode": m}}, V4) for m in ("cluster-proportional", "vpa", "static")],
    ({"autoScaling": {"resources": {"node": {"cpu": "1", "memory": "1Gi"}}}}, V4),
    *[({"autoScaling": {"resources": {"typha": {"cpu": cpu}}}}, V4) for cpu in (1, 0.5, "500m")],
    *[({name: {}}, V4) for name in ("typha", "overlay", "vxlan", "multus", "birdExporter")],
    ({"vxlan": {"enabled": True}, "wireguardEncryption": True}, V4),
    ({"birdExporter": {"enabled": True}}, V4),
    ({"multus": {"enabled": True, "installCNIPlugins": True}}, V4),
    *[({"serviceLoopPrevention": what}, V4) for what in ("Disabled", "Drop", "Reject")],
    *[({"ipip": mode}, V4) for mode in ("Always", "Never", "CrossSubnet", "Off")],
    ({"ipAutodetectionMethod": "first-found"}, V4),
]


@pytest.mark.parametrize(("value", "families"), ALLOWED)
def test_valid_configs_have_no_findings(value: JsonObject, families: tuple[str, ...]) -> None:
    assert fields(value, families) == []


REFUSED: list[tuple[JsonObject, tuple[str, ...], str]] = [
    ({"backend": "bogus"}, V4, "backend"),
    ({"backend": "None"}, V4, "backend"),
    ({"ipam": {"type": "dhcp"}}, V4, "ipam.type"),
    ({"ipam": {"type": "calico-ipam"}}, V6, "ipam.type"),
    ({"ipam": {"type": "calico-ipam"}}, DUAL, "ipam.type"),
    ({"ipam": {"cidr": "10.0.0.0"}}, V4, "ipam.cidr"),
    ({"ipam": {"cidr": "all"}}, V4, "ipam.cidr"),
    ({"ipv4": {"pool": "gre"}}, V4, "ipv4.pool"),
    ({"ipv4": {"mode": "always"}}, V4, "ipv4.mode"),
    ({"ipv4": {"pool": "vxlan", "mode": "CrossSubnet"}}, V4, "ipv4.mode"),
    ({"ipv4": {"pool": "vxlan", "mode": "Off"}}, V4, "ipv4.mode"),
    ({"ipv4": {}}, V6, "ipv4"),
    ({"ipv6": {}}, V4, "ipv6"),
    ({"ipv6": {"pool": "ipip"}}, V6, "ipv6.pool"),
    ({"ipv6": {"mode": "Off"}}, V6, "ipv6.mode"),
    ({"ipv6": {"mode": "Off"}}, DUAL, "ipv6.mode"),
    ({"vethMTU": ""}, V4, "vethMTU"),
    ({"vethMTU": "-1"}, V4, "vethMTU"),
    ({"vethMTU": "large"}, V4, "vethMTU"),
    ({"autoScaling": {"mode": "hpa"}}, V4, "autoScaling.mode"),
    ({"autoScaling": {"resources": {"node": {"cpu": "0"}}}}, V4, "autoScaling.resources.node.cpu"),
    (
        {"autoScaling": {"resources": {"typha": {"memory": "-1Mi"}}}},
        V4,
        "autoScaling.resources.typha.memory",
    ),
    (
        {"autoScaling": {"resources": {"node": {"storage": "1Gi"}}}},
        V4,
        "autoScaling.resources.node.storage",
    ),
    ({"serviceLoopPrevention": "drop"}, V4, "serviceLoopPrevention"),
    ({"ipip": "Sometimes"}, V4, "ipip"),
    ({"ipAutodetectionMethod": ""}, V4, "ipAutodetectionMethod"),
    ({"ipAutodetectionMethod": "random"}, V4, "ipAutodetectionMethod"),
]


@pytest.mark.parametrize(("value", "families", "path"), REFUSED)
def test_a_finding_has_the_path_of_its_field(
    value: JsonObject, families: tuple[str, ...], path: str
) -> None:
    assert fields(value, families) == [path]


def test_all_findings_are_reported_together() -> None:
    assert fields({"backend": "x", "vethMTU": "x", "ipip": "x"}) == ["backend", "vethMTU", "ipip"]


def test_the_error_about_an_invalid_enumeration_lists_supported_values() -> None:
    [cause] = check(decoded({"backend": "bogus"}), V4)

    assert cause.reason == "FieldValueInvalid"
    assert str(cause.under("spec.providerConfig")) == (
        'spec.providerConfig.backend: Invalid value: "bogus": unsupported value "bogus" for '
        "backend, supported values are [bird, none, vxlan]"
    )


def test_an_ipv4_block_without_ipv4_is_refused() -> None:
    [cause] = check(decoded({"ipv4": {"mode": "Never"}}), V6)

    assert "IPv4 configuration must not be specified" in str(cause)


METHODS = [
    "first-found",
    "kubernetes-internal-ip",
    "can-reach=8.8.8.8",
    "can-reach=2001:db8::1",
    "can-reach=www.example.org",
    "interface=eth.*,en.*",
    "skip-interface=docker0",
    "cidr=10.0.0.0/8",
    "cidr=10.0.0.0/8,192.168.0.0/16",
    "cidr=2001:db8::/64",
]
NO_METHODS = [
    "last-found",
    "first-found=x",
    "kubernetes-internal-ip=x",
    "can-reach",
    "can-reach=",
    "can-reach=-x-",
    "interface=",
    "interface=(",
    "interface=a{99999999999999}",
    f"interface={'(' * 20000}{')' * 20000}",
    "skip-interface=[",
    "cidr=",
    "cidr=10.0.0.0",
    "cidr=10.0.0.0/33",
    "cidr=10.0.0.0/8,",
]


@pytest.mark.parametrize("method", METHODS)
def test_auto_detection_methods_are_validated_in_all_fields(method: str) -> None:
    assert fields({"ipv4": {"autoDetectionMethod": method}}) == []
    assert fields({"ipv6": {"autoDetectionMethod": method}}, V6) == []
    assert fields({"ipAutodetectionMethod": method}) == []


@pytest.mark.parametrize("method", NO_METHODS)
def test_invalid_auto_detection_methods_are_reported(method: str) -> None:
    assert fields({"ipv4": {"autoDetectionMethod": method}}) == ["ipv4.autoDetectionMethod"]
    assert fields({"ipv6": {"autoDetectionMethod": method}}, V6) == ["ipv6.autoDetectionMethod"]
    assert fields({"ipAutodetectionMethod": method}) == ["ipAutodetectionMethod"]


def test_an_empty_auto_detection_method_counts_as_absent() -> None:
    assert fields({"ipv4": {"autoDetectionMethod": ""}}) == []


def shoot(**kube_proxy: object) -> Shoot:
    return Shoot({"spec": {"kubernetes": {"kubeProxy": kube_proxy}}})


def test_without_kube_proxy_only_ebpf_routes_services() -> None:
    [cause] = check_shoot(NetworkConfig(), shoot(enabled=False))

    assert str(cause) == (
        "spec.kubernetes.kubeProxy.enabled: Forbidden: Disabling kube-proxy is forbidden in "
        "conjunction with calico without running in ebpf dataplane"
    )
    assert (
        list(check_shoot(decoded({"ebpfDataplane": {"enabled": True}}), shoot(enabled=False))) == []
    )


@pytest.mark.parametrize("kube_proxy", [{}, {"enabled": True}, {"enabled": True, "mode": "IPVS"}])
def test_with_kube_proxy_every_config_is_valid(kube_proxy: JsonObject) -> None:
    assert list(check_shoot(NetworkConfig(), shoot(**kube_proxy))) == []


def test_a_mode_of_a_kube_proxy_that_does_not_run_is_refused() -> None:
    ebpf = decoded({"ebpfDataplane": {"enabled": True}})

    [cause] = check_shoot(ebpf, shoot(enabled=False, mode="IPVS"))

    assert cause.field == "spec.kubernetes.kubeProxy.mode"
    assert "kube-proxy mode must not be set if kube-proxy is disabled" in cause.message
