"""A real API server accepts everything that cilium renders, which follows the house rules."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, map_at, name_of
from pergola.bundle.lint import lint
from pergola.extension_api.cluster import Shoot
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.providers.networking.cilium import Cilium
from pergola.providers.networking.cilium.house_rules import EXCEPTIONS, EXTERNAL
from pergola.providers.networking.plugin import Rendered
from pergola.sandbox import Sandbox
from pergola.testing.cilium_crds import cilium_crds, install
from pergola.testing.crds import definition
from pergola.testing.shared import private
from tests.support.cilium_plans import cilium_config, cilium_plan, cilium_shoot
from tests.support.lost_fields import lost_fields

EXAMPLE: Final = Path(__file__).parents[5] / "examples" / "network" / "cilium"
V4: Final = ("IPv4",)
V6: Final = ("IPv6",)
DUAL: Final = ("IPv4", "IPv6")
PROXIED: Final = cilium_shoot()
REPLACED: Final = cilium_shoot(kube_proxy=False)
WITH_DNS: Final = cilium_shoot(kube_proxy=False, node_local_dns=True)
RICH: Final[JsonObject] = {
    "debug": True,
    "hubble": {"enabled": True},
    "egressGateway": {"enabled": True},
    "mtu": 1400,
    "devices": ["eth0", "eth1"],
    "directRoutingDevice": "eth0",
    "loadBalancingMode": "hybrid",
    "l2Announcements": {"enabled": True, "leaseDuration": "30s"},
    "bgpControlPlane": {"enabled": True},
    "policyAuditMode": True,
    "bpfSocketLBHostnsOnly": {"enabled": True},
    "encryption": {
        "enabled": True,
        "mode": "wireguard",
        "nodeToNodeEnabled": True,
        "strictMode": True,
    },
}
CONFIGS: Final[dict[str, tuple[JsonObject, Shoot, tuple[str, ...]]]] = {
    "defaults": ({}, PROXIED, V4),
    "without kube-proxy": ({}, REPLACED, V4),
    "geneve": ({"overlay": {"enabled": True}, "tunnel": "geneve"}, PROXIED, V4),
    "native": ({"overlay": {"enabled": False}}, PROXIED, V4),
    "pod routes": ({"overlay": {"enabled": False, "createPodRoutes": True}}, REPLACED, V4),
    "IPv6": ({"hubble": {"enabled": True}}, REPLACED, V6),
    "dual-stack": ({"overlay": {"enabled": False}}, WITH_DNS, DUAL),
    "SNAT": (
        {"snatToUpstreamDNS": {"enabled": True}, "snatOutOfCluster": {"enabled": True}},
        PROXIED,
        DUAL,
    ),
    "everything": (RICH, WITH_DNS, DUAL),
    "one node": ({}, cilium_shoot(least_workers=1), V4),
}
OF_OTHERS: Final = [
    definition(GroupVersionKind("monitoring.coreos.com", "v1alpha1", "ScrapeConfig")),
    definition(GroupVersionKind("monitoring.coreos.com", "v1", "PrometheusRule")),
]


def render(fields: JsonObject, shoot: Shoot, families: tuple[str, ...]) -> Rendered:
    plan = cilium_plan(cilium_config(**fields), shoot, families=families)
    plugin = Cilium()
    assert not list(plugin.check(plan.config, families))
    assert not list(plugin.check_shoot(plan.config, shoot))
    return plugin.render(plan)


@pytest.fixture(scope="module")
def shoot_cluster() -> Iterator[Sandbox]:
    """Yield a separate cluster, because other tests store objects under the same names."""
    with private() as own:
        yield own


@pytest.fixture
async def target(shoot_cluster: Sandbox) -> AsyncIterator[Client]:
    """Yield a client of the cluster, which serves all kinds; only CRDs are stored."""
    async with Client.connect(load(shoot_cluster.kubeconfig)) as client:
        await install(client, [*cilium_crds(), *OF_OTHERS])
        yield client


@pytest.mark.parametrize("name", CONFIGS)
async def test_the_api_server_accepts_all_objects_and_drops_no_field(
    target: Client, name: str
) -> None:
    rendered = render(*CONFIGS[name])

    for obj in [*rendered.shoot, *(in_default(obj) for obj in rendered.seed)]:
        taken = await target.create(obj, dry_run=True)
        assert not list(lost_fields(obj, taken)), f"{obj['kind']} {name_of(obj)}"


@pytest.mark.parametrize("name", CONFIGS)
def test_all_objects_follow_the_house_rules(name: str) -> None:
    objects = render(*CONFIGS[name]).shoot

    assert not lint(objects, allow=EXCEPTIONS, external=EXTERNAL)


def test_the_example_is_rendered_with_kube_proxy_replacement_and_without_warnings() -> None:
    texts = [(EXAMPLE / name).read_text() for name in ("cluster.yaml", "network.yaml")]
    objects = [
        d.value for text in texts for d in parse_documents(text) if isinstance(d.value, dict)
    ]
    cluster, network = (o for o in objects if o["kind"] in ("Cluster", "Network"))
    config = {
        name: value
        for name, value in map_at(network, "spec", "providerConfig").items()
        if name not in ("apiVersion", "kind")
    }

    rendered = render(config, Shoot(map_at(cluster, "spec", "shoot")), V4)

    assert rendered.status["routingMode"] == "tunnel"
    assert rendered.status["kubeProxyReplacement"] is True
    assert not rendered.warnings


def in_default(obj: JsonObject) -> JsonObject:
    """Return the object in an existing namespace, for a dry run."""
    return {**obj, "metadata": {**obj["metadata"], "namespace": "default"}}
