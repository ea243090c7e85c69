"""Networks of type cilium on a real seed (spec 40 §6, 'Must hold')."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extensions import Cluster, Context, ExtensionError, RequeueAfter, Shoot, Status
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.providers.networking.cilium import SHOOT_WEBHOOKS, Cilium
from pergola.providers.networking.cilium.observe import Live
from pergola.providers.networking.shipped import shipped_object
from pergola.runtime.clock import SystemClock
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_extension_crds
from pergola.testing.network_site import give_shoot_access
from pergola.testing.world import RecordingClient
from tests.support.cilium_plans import cilium_shoot

NAME: Final = "extension-networking-cilium-config"
CILIUM_CONFIG: Final = Key("kube-system", "cilium-config")
OLD: Final[JsonObject] = {"providerStatus": {"kind": "NetworkStatus"}}
"""The status of a Network that an extension without state has reconciled."""


class Answers:
    """A Shoot with an IPAM mode that a test chooses."""

    def __init__(self, mode: str | None = None, problem: str = "") -> None:
        self.mode = mode
        self.problem = problem
        self.asked = 0

    async def __call__(self, _context: Context) -> Live:
        self.asked += 1
        if self.problem:
            raise ExtensionError(self.problem)
        return Live({"data": {"ipam": self.mode}} if self.mode else None)


@dataclass
class Site:
    """A namespace of a Shoot on the seed."""

    client: RecordingClient
    namespace: str
    saved: list[Status] = field(default_factory=list)

    def context(self, shoot: Shoot | None = None) -> Context:
        async def progress(_percent: int, _text: str) -> None: ...

        async def save(status: Status) -> None:
            self.saved.append(status)

        return Context(
            client=self.client,
            cluster=Cluster(self.namespace, shoot or cilium_shoot()),
            namespace=self.namespace,
            clock=SystemClock(),
            progress=progress,
            save=save,
        )

    def network(
        self, config: JsonObject | None = None, status: JsonObject | None = None
    ) -> JsonObject:
        spec = {
            "type": "cilium",
            "podCIDR": "100.96.0.0/11",
            "serviceCIDR": "100.64.0.0/13",
            "ipFamilies": ["IPv4"],
            "providerConfig": config or {},
        }
        metadata = {"name": "demo", "namespace": self.namespace}
        return {
            "apiVersion": "extensions.gardener.cloud/v1alpha1",
            "kind": "Network",
            "metadata": metadata,
            "spec": spec,
            "status": status or {},
        }

    async def shipped(self) -> dict[str, str]:
        found = await shipped_object(
            self.client, Key(self.namespace, NAME), CONFIG_MAP, CILIUM_CONFIG
        )
        return dict(map_at(found or {}, "data"))

    async def resources(self) -> list[str]:
        return sorted(map(name_of, await self.client.list(MANAGED_RESOURCE, self.namespace)))


@pytest.fixture
async def site(sandbox: Sandbox, cluster_client: Client, namespace: str) -> AsyncIterator[Site]:
    await install_extension_crds(cluster_client)
    async with RecordingClient.connect(load(sandbox.kubeconfig)) as client:
        yield Site(client, namespace)


async def test_without_an_overlay_routing_is_native_whatever_tunnel_the_user_set(
    site: Site,
) -> None:
    config = {"overlay": {"enabled": False}, "tunnel": "vxlan"}

    status = await Cilium(live=Answers()).reconcile(site.context(), site.network(config))

    found = await site.shipped()
    assert found["routing-mode"] == "native"
    assert found["ipv4-native-routing-cidr"] == "100.96.0.0/11"
    assert status["providerStatus"]["warnings"]


async def test_a_cluster_with_a_pool_keeps_the_pool(site: Site) -> None:
    live = Answers("cluster-pool")

    status = await Cilium(live=live).reconcile(site.context(), site.network(status=OLD))

    assert (await site.shipped())["ipam"] == "cluster-pool"
    assert status["state"]["ipam"] == {"mode": "cluster-pool"}
    assert site.saved == [{"state": status["state"]}]


async def test_a_known_mode_is_not_requested_again(site: Site) -> None:
    live = Answers("kubernetes")
    state = {"ipam": {"mode": "cluster-pool"}}

    await Cilium(live=live).reconcile(site.context(), site.network(status={**OLD, "state": state}))

    assert live.asked == 0
    assert (await site.shipped())["ipam"] == "cluster-pool"


async def test_without_kube_proxy_and_an_address_nothing_is_written(site: Site) -> None:
    shoot = cilium_shoot(kube_proxy=False, external=None)

    with pytest.raises(ExtensionError, match="required kubernetes service host missing"):
        await Cilium(live=Answers()).reconcile(site.context(shoot), site.network())

    assert site.client.taken() == []


async def test_an_egress_gateway_with_kube_proxy_is_refused_and_changes_nothing(site: Site) -> None:
    plugin = Cilium(live=Answers())
    await plugin.reconcile(site.context(), site.network())
    site.client.taken()

    with pytest.raises(ExtensionError, match="kubeProxyReplacement must be enabled"):
        await plugin.reconcile(site.context(), site.network({"egressGateway": {"enabled": True}}))

    assert site.client.taken() == []


async def test_a_hibernated_shoot_is_not_asked(site: Site) -> None:
    live = Answers(problem="no answer")
    asleep = cilium_shoot()
    asleep.raw["spec"]["hibernation"] = {"enabled": True}
    asleep.raw["status"]["hibernated"] = True

    status = await Cilium(live=live).reconcile(site.context(asleep), site.network(status=OLD))

    assert live.asked == 0
    assert "state" not in status, "a mode that was not chosen must not be remembered"
    assert (await site.shipped())["ipam"] == "kubernetes"


async def test_the_error_about_a_long_device_name_contains_its_path(site: Site) -> None:
    with pytest.raises(ExtensionError, match=r"spec\.providerConfig\.devices\[0\]: Invalid value"):
        await Cilium(live=Answers()).reconcile(
            site.context(), site.network({"devices": ["a" * 16]})
        )


# Beyond 12: an unknown mode is not guessed


async def test_a_cluster_that_does_not_answer_is_not_changed(site: Site) -> None:
    plugin = Cilium(live=Answers(problem="connection refused"))

    with pytest.raises(RequeueAfter, match=r"IPAM mode is unknown .*: connection refused"):
        await plugin.reconcile(site.context(), site.network(status=OLD))

    assert await site.resources() == []
    assert site.client.taken() == []


async def test_the_mode_is_also_read_from_shipped_objects(site: Site) -> None:
    await Cilium(live=Answers("cluster-pool")).reconcile(site.context(), site.network(status=OLD))
    silent = Cilium(live=Answers(problem="connection refused"))

    status = await silent.reconcile(site.context(), site.network(status=OLD))

    assert status["state"]["ipam"]["mode"] == "cluster-pool"


async def test_a_new_network_whose_shoot_cannot_be_read_gets_no_default_mode(
    site: Site,
) -> None:
    """Its status may have been lost, and the agents of an existing cluster must keep their mode."""
    plugin = Cilium(live=Answers(problem="connection refused"))

    with pytest.raises(RequeueAfter, match=r"IPAM mode is unknown .*: connection refused"):
        await plugin.reconcile(site.context(), site.network())

    assert site.client.taken() == []
    assert site.saved == []


async def test_a_new_network_of_a_shoot_without_cilium_gets_the_default_mode(site: Site) -> None:
    status = await Cilium(live=Answers()).reconcile(site.context(), site.network())

    assert status["state"]["ipam"] == {"mode": "kubernetes"}


@pytest.mark.parametrize("status", [OLD, {}])
async def test_gardeners_kubeconfig_is_needed_to_read_the_mode(
    site: Site, status: JsonObject
) -> None:
    """Use the product's reader, in a namespace without any Secrets."""
    with pytest.raises(RequeueAfter, match=f"Secret {site.namespace}/gardener-internal"):
        await Cilium().reconcile(site.context(), site.network(status=status))


async def test_the_mode_is_read_with_gardeners_kubeconfig(
    site: Site, second_sandbox: Sandbox
) -> None:
    live = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cilium-config", "namespace": "kube-system"},
        "data": {"ipam": "cluster-pool", "cluster-pool-ipv4-mask-size": "25"},
    }
    await give_shoot_access(site.client, site.namespace, second_sandbox.kubeconfig)
    async with Client.connect(load(second_sandbox.kubeconfig)) as shoot:
        await shoot.apply(live, manager="test", force=True)

        status = await Cilium().reconcile(site.context(), site.network(status=OLD))

        await shoot.delete(CONFIG_MAP, CILIUM_CONFIG)
    assert status["state"]["ipam"] == {
        "mode": "cluster-pool",
        "pool": {"cluster-pool-ipv4-mask-size": "25"},
    }


# Everything besides the manifests


async def test_a_second_run_writes_nothing(site: Site) -> None:
    plugin = Cilium(live=Answers())
    status = await plugin.reconcile(site.context(), site.network())
    site.client.taken()

    again = await plugin.reconcile(site.context(), site.network(status=status))

    assert again == status
    assert site.client.taken() == []


async def test_the_shoot_gets_the_webhook_while_it_is_served(site: Site) -> None:
    plugin = Cilium(live=Answers())
    webhook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "gardener-extension-networking-cilium-shoot"},
        "webhooks": [],
    }

    async def served() -> list[JsonObject]:
        return [webhook]

    plugin.shoot_webhooks = served
    await plugin.reconcile(site.context(), site.network())
    assert await site.resources() == sorted([NAME, SHOOT_WEBHOOKS])

    plugin.shoot_webhooks = None
    await plugin.reconcile(site.context(), site.network())
    assert await site.resources() == [NAME]


async def test_a_network_moves_to_another_seed_with_its_mode(site: Site) -> None:
    plugin = Cilium(live=Answers("cluster-pool"))
    status = await plugin.reconcile(site.context(), site.network(status=OLD))
    resource = await site.client.get(MANAGED_RESOURCE, Key(site.namespace, NAME))
    assert maps_at(resource, "spec", "secretRefs")

    await plugin.migrate(site.context(), site.network(status=status))
    with pytest.raises(NotFound):
        await site.client.get(MANAGED_RESOURCE, Key(site.namespace, NAME))

    unreachable = Cilium(live=Answers(problem="the tunnel is not there yet"))
    await unreachable.restore(site.context(), site.network(status={"state": status["state"]}))
    assert (await site.shipped())["ipam"] == "cluster-pool"


async def test_families_wait_for_the_migration_of_nodes(site: Site) -> None:
    shoot = cilium_shoot()
    constraint = {"type": "DualStackNodesMigrationReady", "status": "Progressing"}
    shoot.raw["status"]["constraints"] = [constraint]
    network = site.network()
    network["spec"]["ipFamilies"] = ["IPv4", "IPv6"]
    plugin = Cilium(live=Answers())

    status = await plugin.reconcile(site.context(shoot), network)
    assert status["ipFamilies"] == ["IPv4"]
    assert (await site.shipped())["enable-ipv6"] == "false"

    constraint["status"] = "True"
    status = await plugin.reconcile(site.context(shoot), network)
    assert status["ipFamilies"] == ["IPv4", "IPv6"]
    assert (await site.shipped())["enable-ipv6"] == "true"
