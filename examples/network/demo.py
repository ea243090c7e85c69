"""The life of a network: the extension, the resource manager, and a Shoot.

    python examples/network/demo.py calico      # or cilium, or gardenet

Two clusters are started on this machine: one is the seed, the other plays the Shoot. Speaks to
those of --kubeconfig and --shoot-kubeconfig instead, if they are given.
"""

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from pergola import sandbox
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api import caller
from pergola.extensions.lifecycle import Settings, extension_controller
from pergola.extensions.loading import load_actuator
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.runtime.clock import SystemClock
from pergola.runtime.logging import configure
from pergola.runtime.metrics import Metrics
from pergola.testing import cilium_crds
from pergola.testing.crds import install_extension_crds
from pergola.testing.network_site import give_shoot_access
from pergola.testing.waiting import until
from pergola.testing.world import is_ready

HERE: Final = Path(__file__).parent
CLOCK: Final = SystemClock()
DAEMON_SET: Final = GroupVersionKind("apps", "v1", "DaemonSet")


class Case(NamedTuple):
    """A network plugin, and what the demo changes.

    Attributes:
        reference: as for `pergola extension run`.
        agent: the DaemonSet in the Shoot.
        change: of `providerConfig`.
    """

    reference: str
    agent: str
    change: JsonObject


CASES: Final = {
    "gardenet": Case(
        str(HERE / "gardenet" / "gardenet.py") + ":Gardenet",
        "gardenet-node",
        {"gardenetCustomConfigField": "roses"},
    ),
    "calico": Case("calico", "calico-node", {"overlay": {"enabled": False}}),
    "cilium": Case("cilium", "cilium", {"overlay": {"enabled": False}}),
}


async def main(plugin: str, kubeconfigs: Sequence[Path | None]) -> None:
    """Start the clusters that are not given, and everything that works on them."""
    configure("error", "text")
    async with AsyncExitStack() as stack:
        files = [
            given or await own(stack, name)
            for name, given in zip(("seed", "shoot"), kubeconfigs, strict=True)
        ]
        seed, shoot = [
            await stack.enter_async_context(Client.connect(load(file))) for file in files
        ]
        await install_extension_crds(seed)
        namespace = document(plugin, "cluster.yaml", "Namespace")
        await seed.apply(namespace, manager="demo", force=True)
        await give_shoot_access(seed, namespace_of(plugin), files[1])
        for value in range(500, 1000, 100):
            await shoot.apply(priority_class(value), manager="demo", force=True)
        if plugin == "cilium":  # cilium's operator creates them, but no container runs here
            await cilium_crds.install(shoot, cilium_crds.cilium_crds())
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(work) for work in works(plugin, seed, shoot)]
            await show(plugin, seed, shoot)
            for task in running:
                task.cancel()


async def own(stack: AsyncExitStack, name: str) -> Path:
    """Return the kubeconfig of a new cluster, which ends with the demo."""
    cluster = await sandbox.start(f"network-{name}", progress=print)
    stack.push_async_callback(cluster.stop)
    return cluster.kubeconfig


def works(plugin: str, seed: Client, shoot: Client) -> list[Any]:
    """Return the extension, and the resource manager of the Shoot."""
    actuator = load_actuator(CASES[plugin].reference)
    options = Options(source_namespaces=(namespace_of(plugin),))
    return [
        extension_controller(seed, actuator, Settings(), metrics=Metrics()).run(),
        ResourceManager(seed, shoot, options).run(),
    ]


async def show(plugin: str, seed: Client, shoot: Client) -> None:
    """Run the four steps of the README."""
    case, network = CASES[plugin], document(plugin, "network.yaml", "Network")
    key = Key(namespace_of(plugin), network["metadata"]["name"])
    network["metadata"]["namespace"] = key.namespace

    print(f"\n1. A Shoot wants the network {plugin}:")
    await seed.apply(document(plugin, "cluster.yaml", "Cluster"), manager="demo", force=True)
    await reconcile(seed, network)
    await healthy(seed, plugin, key.namespace)

    print("\n2. Its agents run on all nodes of the Shoot:")
    agent = Key("kube-system", case.agent)
    rolled = await until(shoot, DAEMON_SET, agent, is_rolled_out)
    print(f"   {case.agent}: {rolled['status']['numberReady']} ready")

    print(f"\n3. The owner changes the config: {case.change}")
    map_at(network, "spec", "providerConfig").update(case.change)
    await reconcile(seed, network)
    before = rolled["metadata"]["generation"]
    changed = await until(shoot, DAEMON_SET, agent, lambda o: o["metadata"]["generation"] > before)
    await until(shoot, DAEMON_SET, agent, is_rolled_out)
    print(f"   {case.agent}: generation {changed['metadata']['generation']}, rolled out")

    print("\n4. The Shoot goes:")
    await caller.destroy(seed, caller.NETWORK, key, CLOCK)
    await caller.wait_deleted(seed, caller.NETWORK, key, caller.Waiting(report=report))
    left = await seed.list(MANAGED_RESOURCE, key.namespace)
    print(f"   the Network is gone, and {len(left)} ManagedResources are left")


async def reconcile(seed: Client, network: JsonObject) -> None:
    """Request the network, and return when the extension is done."""
    request = await caller.deploy(seed, caller.NETWORK, network, CLOCK)
    done = await caller.wait_ready(
        seed,
        caller.NETWORK,
        Key.of(network),
        caller.Waiting(report=report),
        expected=request.timestamp,
    )
    operation = done["status"]["lastOperation"]
    print(f"   {operation['type']} {operation['state']}: {operation['description']}")


async def healthy(seed: Client, plugin: str, namespace: str) -> None:
    """Return when everything in the Shoot runs, as gardenlet reports it to users."""
    name = f"extension-networking-{plugin}-config"
    await until(seed, MANAGED_RESOURCE, Key(namespace, name), is_ready)
    print(f"   ManagedResource {name}: healthy")


def report(progress: caller.Progress) -> None:
    """Print the progress of the extension."""
    print(f"   {progress.percent:3d}% {progress.text}")


def is_rolled_out(obj: JsonObject) -> bool:
    """Return whether the current version of the agents runs on all nodes."""
    status, desired = map_at(obj, "status"), map_at(obj, "status").get("desiredNumberScheduled")
    return bool(
        desired
        and status.get("observedGeneration") == obj["metadata"]["generation"]
        and status.get("numberReady") == status.get("updatedNumberScheduled") == desired
    )


def document(plugin: str, file: str, kind: str) -> JsonObject:
    """Return the object of a kind in a file of the plugin's folder."""
    values = [part.value for part in parse_documents((HERE / plugin / file).read_bytes())]
    return next(value for value in values if isinstance(value, dict) and value["kind"] == kind)


def namespace_of(plugin: str) -> str:
    """Return the namespace of the Shoot on the seed."""
    return str(document(plugin, "cluster.yaml", "Cluster")["metadata"]["name"])


def priority_class(value: int) -> JsonObject:
    """Return a PriorityClass that every Shoot has."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"gardener-shoot-system-{value}"},
        "value": 999_998_000 + value,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plugin", choices=CASES)
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--shoot-kubeconfig", type=Path)
    given = parser.parse_args()
    asyncio.run(main(given.plugin, (given.kubeconfig, given.shoot_kubeconfig)))
