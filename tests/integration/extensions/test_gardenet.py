"""The code of the tutorial, executed through the whole life of a Network (spec 40 §9)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, DAEMON_SET, LEASE, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    finalizers_of,
    generation_of,
    labels_of,
    map_at,
    uid_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api import caller
from pergola.extension_api.kinds import ExtensionKind
from pergola.extensions import Actuator, Context
from pergola.extensions.lifecycle import Settings, extension_controller
from pergola.extensions.loading import load_actuator
from pergola.extensions.process import Options, serve
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse, parse_documents
from pergola.runtime.clock import SystemClock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.extension_site import ExtensionSite, extension_site, operation
from pergola.testing.network_site import of_type, python_of, renamed, shoot_manager
from pergola.testing.waiting import PATIENCE, running, settled, until, until_gone
from pergola.testing.world import RecordingClient

ROOT: Final = Path(__file__).parents[3]
TUTORIAL: Final = ROOT / "docs" / "tutorials" / "network-extension.md"
EXAMPLE: Final = ROOT / "examples" / "network" / "gardenet"
CONFIG: Final = "extension-networking-{}-config"
CLOCK: Final = SystemClock()
FINALIZER: Final = "extensions.gardener.cloud/network"
KIND: Final = caller.NETWORK
# Ten times as impatient with failures as callers are.
HASTY: Final = replace(KIND, interval=0.5, severe=3.0)


@dataclass
class Gardenet:
    """The extension of the tutorial, and its objects.

    Attributes:
        site: where its Network is, on the seed.
        shoot: the cluster that the Network is for.
    """

    site: ExtensionSite
    shoot: Client
    network: JsonObject
    reference: str

    def actuator(self) -> Actuator:
        return renamed(load_actuator(self.reference), self.site.type)

    def unit(self, actuator: Actuator | None = None, client: Client | None = None) -> Unit:
        return extension_controller(
            client or self.site.client, actuator or self.actuator(), Settings(), metrics=Metrics()
        )

    async def ask(self, *, kind: ExtensionKind = KIND, **config: Any) -> JsonObject:
        """Deploy the Network and wait for it, as a caller does."""
        desired = {**self.network, "spec": dict(self.network["spec"])}
        desired["spec"]["providerConfig"] = {**desired["spec"]["providerConfig"], **config}
        request = await caller.deploy(self.site.client, KIND, desired, CLOCK)
        return await caller.wait_ready(self.site.client, kind, self.key, expected=request.timestamp)

    async def in_shoot(self, gvk: GroupVersionKind, name: str) -> JsonObject:
        return await self.shoot.get(gvk, Key("kube-system", name))

    @property
    def key(self) -> Key:
        return Key.of(self.network)

    @property
    def resource(self) -> Key:
        """Return the key of the ManagedResource."""
        return Key(self.site.namespace, CONFIG.format(self.site.type))

    async def managed_resource(self) -> JsonObject:
        return await self.site.client.get(MANAGED_RESOURCE, self.resource)


@pytest.fixture
async def gardenet(
    cluster_client: Client, namespace: str, shoot: Client, tmp_path: Path
) -> AsyncIterator[Gardenet]:
    file = tmp_path / "gardenet.py"
    file.write_text(python_of(TUTORIAL))
    site = await extension_site(cluster_client, namespace, f"gardenet-{namespace[-6:]}")
    await site.put_cluster(shoot_of_example())
    manifest = cast("JsonObject", parse((EXAMPLE / "network.yaml").read_text()))
    network = of_type(manifest, "gardenet", site.type, namespace)
    site.key = Key.of(network)
    yield Gardenet(site, shoot, network, f"{file}:Gardenet")
    await site.clean_up()


def shoot_of_example() -> JsonObject:
    """Return the Shoot in the example's Cluster."""
    documents = [d.value for d in parse_documents((EXAMPLE / "cluster.yaml").read_text())]
    [cluster] = [d for d in documents if isinstance(d, dict) and d["kind"] == "Cluster"]
    return map_at(cluster, "spec", "shoot")


def test_the_example_is_the_code_of_the_tutorial() -> None:
    assert (EXAMPLE / "gardenet.py").read_text() == python_of(TUTORIAL), (
        "examples/network/gardenet/gardenet.py must be the code blocks of the tutorial, in order"
    )


def test_the_tutorial_and_the_example_have_the_same_network() -> None:
    [block] = [
        block.removesuffix("```\n").partition("```")[0]
        for block in TUTORIAL.read_text().split("```yaml\n")[1:]
    ]
    ours = cast("JsonObject", parse((EXAMPLE / "network.yaml").read_text()))
    del ours["metadata"]["namespace"]
    assert parse(block) == ours


# Must hold 1: t0 to t8


async def test_the_whole_life_of_a_network(gardenet: Gardenet) -> None:
    site = gardenet.site
    async with shoot_manager(site.client, site.namespace, gardenet.shoot):
        # t0: no process serves it
        request = await caller.deploy(site.client, KIND, gardenet.network, CLOCK)
        assert "status" not in request.obj
        assert annotations_of(request.obj)[marks.OPERATION] == "reconcile"

        async with running(gardenet.unit()):
            # t1 to t4
            ready = await caller.wait_ready(
                site.client, KIND, gardenet.key, expected=request.timestamp
            )
            assert marks.OPERATION not in annotations_of(ready)
            assert finalizers_of(ready) == [FINALIZER]
            assert operation(ready) == ("Create", "Succeeded")
            status = ready["status"]
            assert (status["lastOperation"]["progress"], status["observedGeneration"]) == (100, 1)
            assert "lastError" not in status
            assert status["ipFamilies"] == ["IPv4"]
            assert status["providerStatus"] == {
                "apiVersion": f"{site.type}.networking.extensions.gardener.cloud/v1alpha1",
                "kind": "NetworkStatus",
            }
            resource = await gardenet.managed_resource()
            assert labels_of(resource)["origin"] == f"extension-networking-{site.type}"
            assert resource["spec"]["keepObjects"] is False
            config = await until(
                gardenet.shoot, CONFIG_MAP, Key("kube-system", "gardenet-config"), lambda _: True
            )
            assert config["data"]["podCIDR"] == "100.244.0.0/16"
            assert config["data"]["serviceCIDR"] == "100.32.0.0/13"
            assert config["data"]["customField"] == "tulips"
            agents = await until(
                gardenet.shoot, DAEMON_SET, Key("kube-system", "gardenet-node"), lambda _: True
            )
            pod = agents["spec"]["template"]
            assert pod["metadata"]["labels"]["node.gardener.cloud/critical-component"] == "true"
            assert pod["spec"]["priorityClassName"] == "system-node-critical"

            # t5: a changed config
            ready = await gardenet.ask(gardenetCustomConfigField="roses")
            assert (operation(ready), generation_of(ready)) == (("Reconcile", "Succeeded"), 2)
            await until(
                gardenet.shoot,
                CONFIG_MAP,
                Key("kube-system", "gardenet-config"),
                lambda obj: obj["data"]["customField"] == "roses",
            )
            rolled = await until(
                gardenet.shoot,
                DAEMON_SET,
                Key("kube-system", "gardenet-node"),
                lambda obj: map_at(obj, "spec", "template") != pod,
            )
            assert generation_of(rolled) == 2

            # t6: an unknown field
            before = await gardenet.managed_resource()
            with pytest.raises(caller.NotReady, match=r"spec\.providerConfig\.gardenetCustom\b"):
                await gardenet.ask(kind=HASTY, gardenetCustom="x")
            failed = await site.until_operation("Reconcile", "Error")
            assert failed["status"]["lastOperation"]["progress"] == 50
            assert failed["status"]["observedGeneration"] == 3
            assert failed["status"]["lastError"]["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
            assert failed["status"]["lastError"]["description"].startswith(
                "Error reconciling Network: invalid network config: "
            )
            assert (await gardenet.managed_resource())["spec"] == before["spec"]

            # Must hold 4: without the field again
            ready = await gardenet.ask(gardenetCustomConfigField="roses")
            assert operation(ready) == ("Reconcile", "Succeeded")
            assert "lastError" not in ready["status"]

            # t7: move away …
            state = await caller.leave(site.client, KIND, gardenet.key, CLOCK)
            left = await site.until(lambda obj: not finalizers_of(obj))
            assert operation(left) == ("Migrate", "Succeeded")
            await site.until(lambda obj: marks.OPERATION not in annotations_of(obj))
            with pytest.raises(NotFound):
                await gardenet.managed_resource()
            kept = await gardenet.in_shoot(DAEMON_SET, "gardenet-node")
            assert (uid_of(kept), kept["spec"]) == (uid_of(rolled), rolled["spec"])
            await caller.abandon(site.client, KIND, gardenet.key, CLOCK)

            # … and back
            request = await caller.restore(site.client, KIND, gardenet.network, state, CLOCK)
            ready = await caller.wait_ready(
                site.client, KIND, gardenet.key, expected=request.timestamp
            )
            assert operation(ready) == ("Restore", "Succeeded")
            assert finalizers_of(ready) == [FINALIZER]

            # t8
            await caller.destroy(site.client, KIND, gardenet.key, CLOCK)
            await caller.wait_deleted(site.client, KIND, gardenet.key)
        with pytest.raises(NotFound):
            await gardenet.managed_resource()
        for gvk, name in ((DAEMON_SET, "gardenet-node"), (CONFIG_MAP, "gardenet-config")):
            await until_gone(gardenet.shoot, gvk, Key("kube-system", name))
        async with asyncio.timeout(PATIENCE):
            while await site.client.list(SECRET, site.namespace):
                pass  # the resource manager removes their finalizers last


# Must hold 2


async def test_an_interrupted_operation_is_continued_with_the_same_type(
    gardenet: Gardenet,
) -> None:
    site, begun = gardenet.site, asyncio.Event()
    actuator = gardenet.actuator()

    async def hang(context: Context, plan: object) -> object:
        begun.set()
        return await asyncio.get_running_loop().create_future()

    actuator.observe = hang  # type: ignore[attr-defined]
    await caller.deploy(site.client, KIND, gardenet.network, CLOCK)
    async with running(gardenet.unit(actuator)):
        await begun.wait()
    killed = await site.read()
    assert operation(killed) == ("Create", "Processing")
    assert marks.OPERATION not in annotations_of(killed)

    async with running(gardenet.unit()):
        done = await site.until_operation("Create")

    assert done["status"]["ipFamilies"] == ["IPv4"]
    assert await gardenet.managed_resource()


# Must hold 3


async def test_of_two_replicas_only_the_leader_works_and_renews_the_heartbeat(
    gardenet: Gardenet, kubeconfig: Path
) -> None:
    site = gardenet.site
    calls: dict[str, list[str]] = {"one": [], "other": []}
    tasks: dict[str, asyncio.Task[None]] = {}
    options = Options(
        leader_election_namespace=site.namespace,
        heartbeat_namespace=site.namespace,
        metrics_bind_address="0",
        health_bind_address="0",
    )

    def replica(name: str) -> Actuator:
        actuator = gardenet.actuator()
        reconcile = actuator.reconcile

        async def noted(context: Context, obj: JsonObject) -> JsonObject | None:
            calls[name].append("reconcile")
            return await reconcile(context, obj)

        actuator.reconcile = noted  # type: ignore[method-assign]
        return actuator

    for name in calls:
        tasks[name] = asyncio.create_task(serve(load(kubeconfig), [replica(name)], options))
    try:
        await caller.deploy(site.client, KIND, gardenet.network, CLOCK)
        await site.until_operation("Create")
        heartbeat = Key(site.namespace, "gardener-extension-heartbeat")
        lease = await until(site.client, LEASE, heartbeat, lambda _: True)
        assert lease["spec"]["holderIdentity"] == "networking-gardenet"
        [leader] = [name for name, made in calls.items() if made]
        assert calls[leader] == ["reconcile"]

        tasks.pop(leader).cancel()
        await site.annotate("reconcile")
        await site.until_operation("Reconcile")

        assert {name: len(made) for name, made in calls.items()} == {"one": 1, "other": 1}
    finally:
        for task in tasks.values():
            task.cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)


# Beyond the table


async def test_a_run_that_changes_nothing_writes_only_the_status(
    gardenet: Gardenet, kubeconfig: Path
) -> None:
    async with RecordingClient.connect(load(kubeconfig)) as recorder:
        unit = gardenet.unit(client=recorder)
        async with running(unit):
            await gardenet.ask()
            await settled(unit, gardenet.site.client)
            recorder.taken()

            await gardenet.ask()
            await settled(unit, gardenet.site.client)

            network = f"Network {gardenet.key}"
            assert {write.removeprefix("patch/status ") for write in recorder.taken()} == {
                f"patch {network}",
                network,
            }


async def test_without_kube_proxy_gardenet_refuses_and_changes_nothing_in_the_shoot(
    gardenet: Gardenet,
) -> None:
    site = gardenet.site
    async with running(gardenet.unit()):
        await gardenet.ask()
        before = await gardenet.managed_resource()
        shoot = shoot_of_example()
        shoot["spec"]["kubernetes"]["kubeProxy"]["enabled"] = False
        await site.put_cluster(shoot)

        with pytest.raises(caller.NotReady, match=r"spec\.kubernetes\.kubeProxy\.enabled: Forbid"):
            await gardenet.ask(kind=HASTY)

        assert (await gardenet.managed_resource())["spec"] == before["spec"]


async def test_the_second_family_waits_for_the_nodes(gardenet: Gardenet) -> None:
    site, shoot = gardenet.site, shoot_of_example()
    gardenet.network["spec"]["ipFamilies"] = ["IPv4", "IPv6"]
    constraint = {"type": "DualStackNodesMigrationReady", "status": "Progressing"}
    await site.put_cluster({**shoot, "status": {"constraints": [constraint]}})

    async with running(gardenet.unit()):
        assert (await gardenet.ask())["status"]["ipFamilies"] == ["IPv4"]

        constraint["status"] = "True"
        await site.put_cluster({**shoot, "status": {"constraints": [constraint]}})
        assert (await gardenet.ask())["status"]["ipFamilies"] == ["IPv4", "IPv6"]


async def test_a_forced_deletion_does_not_wait(gardenet: Gardenet) -> None:
    site, shoot = gardenet.site, shoot_of_example()
    async with running(gardenet.unit()):
        await gardenet.ask()
        # No resource manager applies the ManagedResource, and this finalizer keeps it forever.
        held = {"metadata": {"finalizers": ["example.org/held"]}}
        await site.client.patch(MANAGED_RESOURCE, gardenet.resource, held)
        confirmed = {"confirmation.gardener.cloud/force-deletion": "true"}
        shoot["metadata"]["annotations"] = confirmed
        await site.put_cluster(shoot)

        await caller.destroy(site.client, KIND, gardenet.key, CLOCK)
        await caller.wait_deleted(site.client, KIND, gardenet.key)

    released = {"metadata": {"finalizers": None}}
    await site.client.patch(MANAGED_RESOURCE, gardenet.resource, released)
