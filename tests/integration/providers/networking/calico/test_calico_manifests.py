"""A real API server accepts everything that Calico renders, which follows the house rules."""

from collections.abc import AsyncIterator, Iterator

import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.bundle.lint import lint
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.providers.networking.calico import Calico, NetworkConfig
from pergola.providers.networking.calico.lint_exceptions import EXCEPTIONS
from pergola.providers.networking.calico.render.crds import (
    calico_crds,
    network_attachment_definition,
)
from pergola.providers.networking.plugin import Plan, Rendered
from pergola.sandbox import Sandbox
from pergola.testing.crds import definition, gvk_of, is_established, served
from pergola.testing.shared import private
from pergola.testing.waiting import until
from tests.support.lost_fields import lost_fields

V4 = ("IPv4",)
V6 = ("IPv6",)
DUAL = ("IPv4", "IPv6")
RICH: JsonObject = {
    "birdExporter": {"enabled": True},
    "multus": {"enabled": True, "installCNIPlugins": True},
    "wireguardEncryption": True,
    "serviceLoopPrevention": "Drop",
    "vethMTU": "1400",
}
CONFIGS: dict[str, tuple[JsonObject, tuple[str, ...]]] = {
    "defaults": ({}, V4),
    "overlay": ({"overlay": {"enabled": True}}, V4),
    "vxlan": ({"overlay": {"enabled": True}, "vxlan": {"enabled": True}}, V4),
    "native": ({"overlay": {"enabled": False}}, V4),
    "pod routes": ({"overlay": {"enabled": False, "createPodRoutes": True}}, V4),
    "eBPF": ({"ebpfDataplane": {"enabled": True}}, V4),
    "IPv6": ({}, V6),
    "dual-stack": ({"overlay": {"enabled": False}}, DUAL),
    "everything": (RICH, DUAL),
    "vpa": ({"autoScaling": {"mode": "vpa", "resources": {"node": {"cpu": "100m"}}}}, V4),
    "static, without Typha": ({"autoScaling": {"mode": "static"}, "typha": {"enabled": False}}, V4),
}
SHOOT = Shoot(
    {
        "spec": {
            "networking": {"pods": "100.244.0.0/16", "nodes": "10.250.0.0/16"},
            "kubernetes": {"version": "1.36.0", "verticalPodAutoscaler": {"enabled": True}},
        },
        "status": {"networking": {"pods": ["100.244.0.0/16", "2001:db8:1::/112"]}},
    }
)


def render(config: JsonObject, families: tuple[str, ...], namespace: str = "default") -> Rendered:
    plan = Plan(
        config=read_strict(NetworkConfig, config, Calico.config_gvk()),
        pod_range="100.244.0.0/16" if "IPv4" in families else "2001:db8:1::/112",
        service_range="100.32.0.0/13",
        families=families,
        shoot=SHOOT,
        namespace=namespace,
    )
    assert not list(Calico().check(plan.config, families))
    return Calico().render(plan)


OF_OTHERS = [
    definition(GroupVersionKind("monitoring.coreos.com", "v1alpha1", "ScrapeConfig")),
    definition(GroupVersionKind("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler")),
]


@pytest.fixture(scope="module")
def shoot_cluster() -> Iterator[Sandbox]:
    """Yield a separate cluster, because the names of Calico's objects are fixed."""
    with private() as own:
        yield own


@pytest.fixture
async def target(shoot_cluster: Sandbox) -> AsyncIterator[Client]:
    """Yield a client of an API server that serves all kinds that Calico renders."""
    async with Client.connect(load(shoot_cluster.kubeconfig)) as client:
        for crd in [*calico_crds(), network_attachment_definition(), *OF_OTHERS]:
            await client.apply(crd, manager="test", force=True)
        for crd in OF_OTHERS:
            await served(client, gvk_of(crd))
        yield client


@pytest.mark.parametrize(("config", "families"), CONFIGS.values(), ids=CONFIGS)
async def test_the_api_server_accepts_all_objects_and_drops_no_field(
    config: JsonObject, families: tuple[str, ...], target: Client
) -> None:
    rendered = render(config, families)
    objects = [o for o in [*rendered.shoot, *rendered.seed] if GroupVersionKind.of(o) != CRD]
    dropped: list[str] = []

    for sent in objects:
        got = await target.create(sent, dry_run=True)
        dropped += [f"{sent['kind']} {Key.of(sent)}{path}" for path in lost_fields(sent, got)]

    assert dropped == []
    assert len(objects) > 20


async def test_every_kind_of_calico_is_served(target: Client) -> None:
    for crd in [*calico_crds(), network_attachment_definition()]:
        await until(target, CRD, Key.of(crd), is_established)


@pytest.mark.parametrize(("config", "families"), CONFIGS.values(), ids=CONFIGS)
def test_all_objects_follow_the_house_rules(config: JsonObject, families: tuple[str, ...]) -> None:
    assert lint(render(config, families).shoot, allow=EXCEPTIONS) == []
