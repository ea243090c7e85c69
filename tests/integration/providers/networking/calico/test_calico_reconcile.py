"""Networks of type calico on a real seed (spec 40 §5, 'Must hold')."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, DAEMON_SET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extensions import Cluster, Context, ExtensionError, RequeueAfter, Shoot, Status
from pergola.extensions.loading import load_actuator
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.providers.networking.calico import Calico, FeatureGates
from pergola.providers.networking.shipped import shipped_object
from pergola.runtime.clock import SystemClock
from pergola.testing.crds import install_extension_crds
from pergola.testing.world import RecordingClient

EXAMPLE: Final = Path(__file__).parents[5] / "examples" / "network" / "calico"
NAME: Final = "extension-networking-calico-config"
SEED_CONFIG: Final[JsonObject] = {
    "apiVersion": "calico.networking.extensions.gardener.cloud/v1alpha1",
    "kind": "NetworkConfig",
    "backend": "bird",
    "ipam": {"cidr": "usePodCIDR", "type": "host-local"},
}


@dataclass
class Site:
    """A namespace of a Shoot on the seed."""

    client: RecordingClient
    namespace: str
    saved: list[Status] = field(default_factory=list)

    def context(self, shoot: JsonObject | None = None) -> Context:
        async def progress(_percent: int, _text: str) -> None: ...

        async def save(status: Status) -> None:
            self.saved.append(status)

        return Context(
            client=self.client,
            cluster=Cluster(self.namespace, Shoot(shoot or {"spec": {}})),
            namespace=self.namespace,
            clock=SystemClock(),
            progress=progress,
            save=save,
        )

    async def shipped(self, gvk: GroupVersionKind, name: str) -> JsonObject:
        key = Key("kube-system", name)
        found = await shipped_object(self.client, Key(self.namespace, NAME), gvk, key)
        assert found is not None
        return found

    async def has_managed_resource(self) -> bool:
        try:
            await self.client.get(MANAGED_RESOURCE, Key(self.namespace, NAME))
        except NotFound:
            return False
        return True


@pytest.fixture
async def site(kubeconfig: Path, cluster_client: Client, namespace: str) -> AsyncIterator[Site]:
    await install_extension_crds(cluster_client)
    async with RecordingClient.connect(load(kubeconfig)) as client:
        yield Site(client, namespace)


def network(config: JsonObject | None = None, *families: str) -> JsonObject:
    ipv6_only = families == ("IPv6",)
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Network",
        "metadata": {"name": "my-network"},
        "spec": {
            "type": "calico",
            "ipFamilies": list(families or ("IPv4",)),
            "podCIDR": "2001:db8:1::/112" if ipv6_only else "100.244.0.0/16",
            "serviceCIDR": "2001:db8:2::/112" if ipv6_only else "100.32.0.0/13",
            "providerConfig": config or {},
        },
    }


def shoot(**spec: object) -> JsonObject:
    pods = {"networking": {"pods": ["100.244.0.0/16", "2001:db8:1::/112"]}}
    return {"spec": spec, "status": pods}


async def test_the_seeds_example_becomes_a_managed_resource(site: Site) -> None:
    status = await Calico().reconcile(site.context(), network(SEED_CONFIG))

    stored = await site.client.get(MANAGED_RESOURCE, Key(site.namespace, NAME))
    assert labels_of(stored)["origin"] == "extension-networking-calico"
    assert stored["spec"]["injectLabels"] == {"shoot.gardener.cloud/no-cleanup": "true"}
    assert stored["spec"].get("keepObjects", False) is False
    assert await site.shipped(DAEMON_SET, "calico-node")
    data = (await site.shipped(CONFIG_MAP, "calico-config"))["data"]
    assert data["calico_backend"] == "bird"
    assert '"subnet": "usePodCidr"' in data["cni_network_config"]
    assert status["ipFamilies"] == ["IPv4"]
    assert status["providerStatus"]["kind"] == "NetworkStatus"
    assert status["providerStatus"]["backend"] == "bird"
    assert await site.client.get(CONFIG_MAP, Key(site.namespace, "calico-dashboards"))


@pytest.mark.parametrize(
    ("config", "families", "text"),
    [
        ({"backend": "bogus"}, ("IPv4",), "spec.providerConfig.backend"),
        ({"bakcend": "bird"}, ("IPv4",), "bakcend"),
        ({"ipv4": {}}, ("IPv6",), "IPv4 configuration must not be specified"),
        ({"ipv6": {"mode": "Off"}}, ("IPv6",), "spec.providerConfig.ipv6.mode"),
    ],
)
async def test_an_invalid_config_is_reported_and_nothing_is_written(
    site: Site, config: JsonObject, families: tuple[str, ...], text: str
) -> None:
    with pytest.raises(ExtensionError, match=f"invalid network config: .*{text}"):
        await Calico().reconcile(site.context(), network(config, *families))

    assert site.client.taken() == []
    assert not await site.has_managed_resource()


async def test_without_kube_proxy_and_ebpf_nothing_is_written(site: Site) -> None:
    off = shoot(kubernetes={"kubeProxy": {"enabled": False}})

    with pytest.raises(ExtensionError, match=r"spec\.kubernetes\.kubeProxy\.enabled: Forbidden"):
        await Calico().reconcile(site.context(off), network())

    assert site.client.taken() == []


async def test_two_families_are_rolled_out_when_the_nodes_are_ready(site: Site) -> None:
    both = network({}, "IPv4", "IPv6")
    constraint = {"type": "DualStackNodesMigrationReady", "status": "False"}
    migrating = shoot()
    migrating["status"]["constraints"] = [constraint]

    status = await Calico().reconcile(site.context(migrating), both)

    assert status["ipFamilies"] == ["IPv4"]
    assert await ip6(site) == "none"
    constraint["status"] = "True"
    status = await Calico().reconcile(site.context(migrating), both)
    assert status["ipFamilies"] == ["IPv4", "IPv6"]
    assert await ip6(site) == "autodetect"


async def ip6(site: Site) -> str:
    return (await environment(site))["IP6"]


async def environment(site: Site) -> dict[str, str]:
    daemon_set = await site.shipped(DAEMON_SET, "calico-node")
    containers = map_at(daemon_set, "spec", "template", "spec")["containers"]
    return {v["name"]: v.get("value", "") for v in containers[0]["env"]}


async def test_a_migration_keeps_everything_in_the_shoot(site: Site) -> None:
    await Calico().reconcile(site.context(), network())
    site.client.taken()

    await Calico().migrate(site.context(), network())

    writes = [write for write in site.client.taken() if "ManagedResource" in write]
    assert [write.split()[0] for write in writes] == ["patch", "delete"]
    assert not await site.has_managed_resource()


async def test_a_second_reconciliation_writes_nothing(site: Site) -> None:
    first = await Calico().reconcile(site.context(shoot()), network({}, "IPv4", "IPv6"))
    site.client.taken()

    second = await Calico().reconcile(site.context(shoot()), network({}, "IPv4", "IPv6"))

    assert second == first
    assert site.client.taken() == []


def node(name: str, reason: str) -> JsonObject:
    condition = {"type": "NetworkUnavailable", "status": "False", "reason": reason}
    return {"metadata": {"name": name}, "status": {"conditions": [condition]}}


async def test_an_overlay_is_removed_once_all_nodes_have_routes(site: Site) -> None:
    nodes = [node("ready", "RouteCreated"), node("late", "CalicoIsUp")]

    async def all_nodes(_context: Context) -> Sequence[JsonObject]:
        return nodes

    calico = Calico(gates=FeatureGates(seamless_overlay_switch=True), nodes=all_nodes)
    context = site.context(shoot(kubernetes={"version": "1.36.0"}))
    await calico.reconcile(context, network({"overlay": {"enabled": True}}))

    with pytest.raises(
        RequeueAfter, match="waiting for routes to be created on all nodes"
    ) as waiting:
        await calico.reconcile(context, network({"overlay": {"enabled": False}}))

    assert "late" in str(waiting.value)
    assert (await environment(site))["FELIX_IPINIPENABLED"] == "true"
    nodes[1] = node("late", "RouteCreated")
    await calico.reconcile(context, network({"overlay": {"enabled": False}}))
    assert (await environment(site))["FELIX_IPINIPENABLED"] == "false"
    nodes[1] = node("late", "CalicoIsUp")  # without an overlay, routes are not required
    await calico.reconcile(context, network({"overlay": {"enabled": False}}))


async def test_without_the_gate_an_overlay_is_removed_at_once(site: Site) -> None:
    context = site.context(shoot(kubernetes={"version": "1.36.0"}))
    await Calico().reconcile(context, network({"overlay": {"enabled": True}}))

    await Calico().reconcile(context, network({"overlay": {"enabled": False}}))

    assert (await environment(site))["FELIX_IPINIPENABLED"] == "false"


async def test_the_example_does_what_its_readme_says(site: Site) -> None:
    cluster, desired = [
        [doc.value for doc in parse_documents((EXAMPLE / name).read_bytes())][-1]
        for name in ("cluster.yaml", "network.yaml")
    ]
    assert isinstance(cluster, dict)
    assert isinstance(desired, dict)
    shoot_of_example = map_at(cluster, "spec", "shoot")
    stored = await site.client.create(desired | at(site.namespace))
    calico = load_actuator("pergola.providers.networking.calico:Calico")
    assert isinstance(calico, Calico)

    status = await calico.reconcile(site.context(shoot_of_example), stored)

    assert status["providerStatus"]["backend"] == "bird"
    assert status["providerStatus"]["ipv4"]["mode"] == "Always"
    stored["spec"]["providerConfig"]["overlay"] = {"enabled": False}
    status = await calico.reconcile(site.context(shoot_of_example), stored)
    assert status["providerStatus"]["backend"] == "none"
    assert "overridden" in status["providerStatus"]["warnings"][0]


def at(namespace: str) -> JsonObject:
    return {"metadata": {"name": "my-network", "namespace": namespace}}
