"""Cilium's own option parser and label filter accept what we render."""

from collections.abc import Iterator
from itertools import product
from typing import Final

import pytest

from pergola.api.objects import JsonObject, name_of
from pergola.providers.networking.cilium import Cilium, NetworkConfig
from pergola.providers.networking.plugin import Plan
from tests.support.cilium_plans import cilium_config, cilium_plan, cilium_shoot
from tests.support.config_checks import check_cilium

pytestmark = pytest.mark.soak("originals")

FAMILIES: Final = (("IPv4",), ("IPv6",), ("IPv4", "IPv6"))
CHOICES: Final[dict[str, tuple[object, ...]]] = {
    "overlay": (None, {"enabled": True}, {"enabled": False, "createPodRoutes": True}),
    "tunnel": (None, "geneve", "disabled"),
    "loadBalancingMode": (None, "dsr", "hybrid"),
    "egressGateway": (None, {"enabled": True}),
    "snatToUpstreamDNS": (None, {"enabled": True}),
    "encryption": (
        None,
        {"enabled": True, "mode": "wireguard", "nodeToNodeEnabled": True},
        {"enabled": True, "mode": "wireguard", "strictMode": True},
    ),
    "hubble": ({"enabled": False}, {"enabled": True}),
}
# Options that each change one key, independent of all others.
TOGETHER: Final[JsonObject] = {
    "debug": True,
    "mtu": 1400,
    "devices": ["eth0", "eth1"],
    "directRoutingDevice": "eth0",
    "bgpControlPlane": {"enabled": True},
    "l2Announcements": {"enabled": True, "leaseDuration": "1m30s"},
    "policyAuditMode": True,
    "bpfSocketLBHostnsOnly": {"enabled": True},
    "cni": {"exclusive": False},
    "enableIpv6Masquerade": True,
    "enableBPFMasquerade": False,
    "ipv4NativeRoutingCIDREnabled": True,
}
LABELS: Final = {
    "app": True,
    "app.kubernetes.io/name": True,
    "batch.kubernetes.io/job-name": True,
    "io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name": True,
    "io.cilium.k8s.namespace.labels.team": True,
    "io.cilium.k8s.policy.serviceaccount": True,
    "io.kubernetes.pod.namespace": True,
    "batch.kubernetes.io/controller-uid": False,
    "controller-revision-hash": False,
    "controller-uid": False,
    "kubernetes.io/arch": False,
    "pod-template-hash": False,
    "statefulset.kubernetes.io/pod-name": False,
    "topology.kubernetes.io/zone": False,
}
REMOVED: Final = ["enable-ipv4-egress-gateway"]
"""Rendered although no program of this version knows it: see `config_map`."""


def plans() -> Iterator[Plan[NetworkConfig]]:
    shoots = [
        cilium_shoot(kube_proxy=kube_proxy, node_local_dns=node_local_dns)
        for kube_proxy, node_local_dns in product((True, False), repeat=2)
    ]
    for values in product(*CHOICES.values()):
        given = zip(CHOICES, values, strict=True)
        fields = {name: value for name, value in given if value is not None}
        for shoot, families in product(shoots, FAMILIES):
            yield cilium_plan(cilium_config(**fields), shoot, families=families)
    for shoot, families in product(shoots, FAMILIES):
        yield cilium_plan(cilium_config(**TOGETHER), shoot, families=families)
        pool = {"cluster-pool-ipv4-mask-size": "26"} if "IPv4" in families else {}
        state = {"ipam": {"mode": "cluster-pool", "pool": pool}}
        yield cilium_plan(cilium_config(), shoot, families=families, state=state)


def questions() -> list[JsonObject]:
    """Return the distinct ConfigMaps that the options lead to."""
    plugin, found = Cilium(), {}
    for plan in plans():
        if [*plugin.check(plan.config, plan.families)] or [
            *plugin.check_shoot(plan.config, plan.shoot)
        ]:
            continue
        maps = {
            name_of(obj): obj["data"]
            for obj in plugin.render(plan).shoot
            if obj["kind"] == "ConfigMap"
        }
        config = maps["cilium-config"]
        found[tuple(config.items())] = {
            "config": config,
            "labelFilter": maps["label-prefix-conf"]["label-prefix"],
            "labels": dict.fromkeys(LABELS, "x"),
        }
    return list(found.values())


@pytest.fixture(scope="module")
def asked() -> list[JsonObject]:
    return questions()


def test_agents_accept_every_configuration_without_a_warning(asked: list[JsonObject]) -> None:
    assert len(asked) > 300

    for question, judgement in zip(asked, check_cilium(asked), strict=True):
        assert judgement["accepted"], (judgement, question["config"])
        assert judgement.get("unknown", []) == REMOVED
        assert judgement.get("warnings", []) == []
        assert judgement["identity"] == sorted(label for label, kept in LABELS.items() if kept)


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("mtu", "many", "mtu"),
        ("routing-mode", "sideways", "routing mode"),
        ("ipv4-native-routing-cidr", "100.96.0.0", "CIDR"),
        ("unmanaged-pod-watcher-interval", "soon", "unmanaged-pod-watcher-interval"),
        ("monitor-aggregation", "some", "aggregation"),
    ],
)
def test_agents_refuse_an_unreadable_value(key: str, value: str, error: str) -> None:
    plan = cilium_plan(cilium_config(overlay={"enabled": False}))
    [config_map] = [
        obj["data"] for obj in Cilium().render(plan).shoot if name_of(obj) == "cilium-config"
    ]

    [judgement] = check_cilium([{"config": {**config_map, key: value}, "labelFilter": FILTER}])

    assert not judgement["accepted"]
    assert error in judgement["error"]


FILTER: Final = '{"version": 1, "valid-prefixes": []}'


def test_agents_refuse_a_label_rule_without_a_source() -> None:
    rules = '{"version": 1, "valid-prefixes": [{"prefix": "pod-template-hash", "invert": true}]}'
    config = {"label-prefix-file": "/tmp/cilium/label-prefix/label-prefix"}  # noqa: S108 - theirs
    plan = cilium_plan()
    [rendered] = [
        obj["data"] for obj in Cilium().render(plan).shoot if name_of(obj) == "cilium-config"
    ]

    [judgement] = check_cilium([{"config": rendered | config, "labelFilter": rules}])

    assert "source was empty" in judgement["error"]


def test_a_key_that_no_program_knows_is_reported() -> None:
    [judgement] = check_cilium([{"config": {"enable-teleport": "true"}, "labelFilter": FILTER}])

    assert judgement["unknown"] == ["enable-teleport"]
