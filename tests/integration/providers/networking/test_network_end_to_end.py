"""From a Network to agents on nodes, with a real extension, resource manager and Shoot."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import pytest

from pergola.api.kinds import CRD, DAEMON_SET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api import caller
from pergola.extensions import Actuator
from pergola.extensions.lifecycle import Settings, extension_controller
from pergola.extensions.loading import load_actuator
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse, parse_documents
from pergola.providers.networking.plugin import NetworkPlugin, Plan, Rendered
from pergola.runtime.clock import SystemClock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.crds import definition, serve
from pergola.testing.extension_site import ExtensionSite, extension_site, operation
from pergola.testing.network_site import give_shoot_access, of_type, renamed, shoot_manager
from pergola.testing.waiting import running, until, until_gone
from pergola.testing.world import is_ready
from tests.support.proxy import CuttableProxy

EXAMPLES: Final = Path(__file__).parents[4] / "examples" / "network"
CLOCK: Final = SystemClock()
# A garbage collector pauses for up to a minute when it learns of new kinds; it deletes workloads.
KIND: Final = replace(caller.NETWORK, interval=0.5, severe=3.0, timeout=150.0)
PLUGINS: Final = {
    "gardenet": (str(EXAMPLES / "gardenet" / "gardenet.py") + ":Gardenet", "gardenet-node"),
    "calico": ("calico", "calico-node"),
    "cilium": ("cilium", "cilium"),
}
# The kinds that the plugin's own operator installs in the Shoot and that the plugin renders.
INSTALLED: Final = {"cilium": [GroupVersionKind("cilium.io", "v2", "CiliumNetworkPolicy")]}


@dataclass
class Case:
    """A plugin with its Network on a seed, and the Shoot of the Network."""

    plugin: str
    site: ExtensionSite
    network: JsonObject
    shoot: Client

    def actuator(self) -> Actuator:
        return renamed(load_actuator(PLUGINS[self.plugin][0]), self.site.type)

    def unit(self, actuator: Actuator | None = None) -> Unit:
        """Return the extension."""
        return extension_controller(
            self.site.client, actuator or self.actuator(), Settings(), metrics=Metrics()
        )

    async def until_health(self, status: str) -> None:
        """Wait until the ManagedResource with the objects of the Shoot is healthy, or is not."""
        actuator = self.actuator()
        assert isinstance(actuator, NetworkPlugin)
        key = Key(self.site.namespace, actuator.managed_resource())
        await until(
            self.site.client,
            MANAGED_RESOURCE,
            key,
            lambda obj: ("True" if is_ready(obj) else "False") == status,
        )

    async def deployed(self) -> JsonObject:
        """Deploy the Network, and return it once the extension is done."""
        request = await caller.deploy(self.site.client, KIND, self.network, CLOCK)
        return await caller.wait_ready(
            self.site.client, KIND, self.site.key, expected=request.timestamp
        )

    async def destroyed(self) -> None:
        await caller.destroy(self.site.client, KIND, self.site.key, CLOCK)
        await caller.wait_deleted(self.site.client, KIND, self.site.key)

    async def agents(self) -> JsonObject:
        return await self.shoot.get(DAEMON_SET, Key("kube-system", PLUGINS[self.plugin][1]))


async def case_of(plugin: str, client: Client, namespace: str, shoot: Client) -> Case:
    """Return the example of a plugin in a namespace of the test."""
    own_type = f"{plugin}-{namespace[-6:]}"
    site = await extension_site(client, namespace, own_type)
    folder = EXAMPLES / plugin
    documents = [d.value for d in parse_documents((folder / "cluster.yaml").read_text())]
    [cluster] = [d for d in documents if isinstance(d, dict) and d["kind"] == "Cluster"]
    await site.put_cluster(map_at(cluster, "spec", "shoot"))
    network = cast("JsonObject", parse((folder / "network.yaml").read_text()))
    moved = of_type(network, plugin, own_type, namespace)
    site.key = Key.of(moved)
    return Case(plugin, site, moved, shoot)


@pytest.fixture
async def gardenet(cluster_client: Client, namespace: str, shoot: Client) -> AsyncIterator[Case]:
    case = await case_of("gardenet", cluster_client, namespace, shoot)
    yield case
    await case.site.clean_up()


@asynccontextmanager
async def serving(client: Client, kinds: Iterable[GroupVersionKind]) -> AsyncIterator[None]:
    """Serve kinds that another program installs, and remove them for the next test."""
    crds = [definition(gvk) for gvk in kinds]
    await serve(client, *crds)
    yield
    for crd in crds:
        await client.delete(CRD, Key.of(crd))
        await until_gone(client, CRD, Key.of(crd))


@pytest.mark.parametrize("plugin", PLUGINS)
async def test_a_network_runs_agents_on_all_nodes_until_it_is_deleted(
    cluster_client: Client,
    namespace: str,
    shoot: Client,
    shoot_sandbox: Sandbox,
    plugin: str,
) -> None:
    case = await case_of(plugin, cluster_client, namespace, shoot)
    await give_shoot_access(cluster_client, namespace, shoot_sandbox.kubeconfig)
    async with (
        serving(shoot, INSTALLED.get(plugin, ())),
        shoot_manager(cluster_client, namespace, shoot, sync_seconds=2),
        running(case.unit()),
    ):
        done = await case.deployed()
        assert operation(done) == ("Create", "Succeeded")
        await case.until_health("True")
        assert map_at(await case.agents(), "status")["numberReady"] == 3

        await case.destroyed()

        key = Key("kube-system", PLUGINS[plugin][1])
        await until_gone(shoot, DAEMON_SET, key)
    assert await cluster_client.list(MANAGED_RESOURCE, namespace) == []
    await case.site.clean_up()


async def test_a_network_is_unhealthy_while_its_shoot_does_not_answer(
    gardenet: Case, shoot_sandbox: Sandbox
) -> None:
    client, namespace = gardenet.site.client, gardenet.site.namespace
    async with (
        CuttableProxy(load(shoot_sandbox.kubeconfig)) as proxy,
        Client.connect(proxy.config) as cut_off,
        shoot_manager(client, namespace, cut_off, sync_seconds=2),
        running(gardenet.unit()),
    ):
        proxy.refuse()
        proxy.cut()
        done = await gardenet.deployed()
        assert operation(done) == ("Create", "Succeeded")
        await gardenet.until_health("False")

        proxy.accept()
        await gardenet.until_health("True")
        await gardenet.destroyed()


async def test_a_plugin_that_waits_for_the_shoot_fails_while_it_does_not_answer(
    gardenet: Case, shoot_sandbox: Sandbox
) -> None:
    client, namespace = gardenet.site.client, gardenet.site.namespace
    actuator = gardenet.actuator()
    assert isinstance(actuator, NetworkPlugin)
    actuator.wait_seconds = 2.0
    async with (
        CuttableProxy(load(shoot_sandbox.kubeconfig)) as proxy,
        Client.connect(proxy.config) as cut_off,
        shoot_manager(client, namespace, cut_off, sync_seconds=2),
        running(gardenet.unit(actuator)),
    ):
        proxy.refuse()
        proxy.cut()
        with pytest.raises(caller.NotReady, match=r"ManagedResource .* is not ready after 2 s"):
            await gardenet.deployed()

        actuator.wait_seconds = 30.0
        proxy.accept()
        done = await gardenet.site.until_operation("Create")
        assert "lastError" not in done["status"]
        await until(client, MANAGED_RESOURCE, Key(namespace, actuator.managed_resource()), is_ready)
        await gardenet.destroyed()


async def test_a_network_moves_to_another_seed_without_effect_on_the_shoot(
    gardenet: Case, second_sandbox: Sandbox
) -> None:
    site, shoot = gardenet.site, gardenet.shoot
    actuator = gardenet.actuator()
    assert isinstance(actuator, NetworkPlugin)
    remember(actuator)
    async with (
        shoot_manager(site.client, site.namespace, shoot, sync_seconds=2),
        running(gardenet.unit(actuator)),
    ):
        await gardenet.deployed()
        await gardenet.until_health("True")
        before = await gardenet.agents()
        state = await caller.leave(site.client, KIND, site.key, CLOCK)
        await caller.abandon(site.client, KIND, site.key, CLOCK)
    assert await site.client.list(MANAGED_RESOURCE, site.namespace) == []

    async with Client.connect(load(second_sandbox.kubeconfig)) as second:
        name = {"name": site.namespace}
        await second.create({"apiVersion": "v1", "kind": "Namespace", "metadata": name})
        other = await case_of("gardenet", second, site.namespace, shoot)
        arrived = other.actuator()
        assert isinstance(arrived, NetworkPlugin)
        seen = remember(arrived)
        async with (
            shoot_manager(second, site.namespace, shoot, sync_seconds=2),
            running(other.unit(arrived)),
        ):
            request = await caller.restore(second, KIND, other.network, state, CLOCK)
            done = await caller.wait_ready(second, KIND, site.key, expected=request.timestamp)

            assert operation(done) == ("Restore", "Succeeded")
            assert seen == [{"chosen": "first"}]
            assert done["status"]["state"] == {"chosen": "first"}
            await other.until_health("True")
            after = await gardenet.agents()
            assert (uid_of(after), after["spec"]) == (uid_of(before), before["spec"])
            await other.destroyed()
        await other.site.clean_up()


def remember(plugin: NetworkPlugin[Any]) -> list[JsonObject]:
    """Make a plugin choose a state once and keep it; return the states that it was given."""
    render = plugin.render
    seen: list[JsonObject] = []

    def chosen(plan: Plan[Any]) -> Rendered:
        seen.append(plan.state)
        return replace(render(plan), state=plan.state or {"chosen": "first"})

    plugin.render = chosen  # type: ignore[method-assign]
    return seen
