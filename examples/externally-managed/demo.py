"""The external manager at work, on a temporary cluster.

    python examples/externally-managed/demo.py

Speaks to the cluster of --kubeconfig instead of a new one, if that is given; the kinds must not be
there in another form already.
"""

import argparse
import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from pergola import sandbox
from pergola.api.conditions import get_condition
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.externally_managed.app import Options, assemble
from pergola.externally_managed.contract import endpoint_of, failure_domains_of
from pergola.externally_managed.kinds import parse_kind
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse, parse_documents
from pergola.runtime.logging import configure
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import until

HERE = Path(__file__).parent
KIND = parse_kind("DemoCluster.infrastructure.cluster.x-k8s.io")
DEMO = GroupVersionKind(KIND.group, "v1beta2", KIND.kind)
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SHOP, NETWORK = Key("default", "shop"), Key("default", "shop-network")
PATIENCE = 30.0


async def main(kubeconfig: Path | None) -> None:
    """Start a cluster if none is given, and the manager on it."""
    configure("error", "text")
    async with AsyncExitStack() as stack:
        if kubeconfig is None:
            own = await sandbox.start("externally-managed", progress=print)
            stack.push_async_callback(own.stop)
            kubeconfig = own.kubeconfig
        client = await stack.enter_async_context(Client.connect(load(kubeconfig)))
        await apply(client, "kinds.yaml")
        await served(client)
        await apply(client, "cluster.yaml")
        async with asyncio.TaskGroup() as group:
            units = await assemble(client, Options(kinds=(KIND,)), Metrics())
            running = [group.create_task(unit.run()) for unit in units]
            await show(client)
            for task in running:
                task.cancel()


async def show(client: Client) -> None:
    """Run the four steps of the README."""
    print("\n1. Nothing describes the network yet:")
    await tell(client, lambda obj: reason(obj) == "SourceNotFound")

    print("\n2. kubectl apply -f network.yaml")
    await apply(client, "network.yaml")
    await tell(client, lambda obj: reason(obj) == "NetworkReady")

    print("\n3. A zone is added to the description:")
    described = await client.get(CONFIG_MAP, NETWORK)
    description: Any = parse(described["data"]["network.yaml"].encode())
    description["failureDomains"].append({"name": "zone-c", "controlPlane": False})
    await describe(client, description)
    await tell(client, lambda obj: len(failure_domains_of(obj, "v1beta2")) == 3)

    print("\n4. Another client applies another endpoint:")
    desired = {"spec": {"controlPlaneEndpoint": {"host": "mine.example.org", "port": 6443}}}
    obj = {"apiVersion": DEMO.api_version, "kind": DEMO.kind, **desired}
    obj["metadata"] = {"name": SHOP.name, "namespace": SHOP.namespace}
    await client.apply(obj, manager="somebody", force=True)
    await tell(client, lambda obj: reason(obj) == "Conflict")


async def describe(client: Client, description: JsonObject) -> None:
    """Change the description of the network."""
    await client.patch(CONFIG_MAP, NETWORK, {"data": {"network.yaml": dump(description)}})


async def apply(client: Client, file: str) -> None:
    """Apply the manifests of a file in this folder."""
    for document in parse_documents((HERE / file).read_bytes()):
        if isinstance(document.value, dict):
            await client.apply(document.value, manager="demo", force=True)


async def served(client: Client) -> None:
    """Return when the API server serves the kinds that were just installed."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.get(DEMO, SHOP)
            except UnknownKind:
                client.discovery.forget(DEMO)
                await client.get_raw("/version")
            except NotFound:
                return


async def tell(client: Client, holds: Callable[[JsonObject], bool]) -> None:
    """Wait until `holds` accepts the InfraCluster, and print its state."""
    obj = await until(client, DEMO, SHOP, holds)
    condition = get_condition(maps_at(obj, "status", "conditions"), "Ready") or {}
    endpoint = endpoint_of(obj)
    names = [domain.name for domain in failure_domains_of(obj, "v1beta2")]
    print(f"   Ready:           {condition['status']} ({condition['reason']})")
    print(f"                    {condition['message']}")
    print(f"   endpoint:        {endpoint if endpoint.is_valid else 'none'}")
    print(f"   failure domains: {', '.join(names) or 'none'}")


def reason(obj: JsonObject) -> str:
    """Return the reason of the condition Ready."""
    condition = get_condition(maps_at(obj, "status", "conditions"), "Ready") or {}
    return str(condition.get("reason", ""))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path)
    asyncio.run(main(parser.parse_args().kubeconfig))
