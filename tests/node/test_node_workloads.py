"""Pods, volumes, Services and DNS on a real node."""

import asyncio
import json

import pytest

from pergola.api.kinds import EVENT, POD, SERVICE, STATEFUL_SET
from pergola.api.objects import GroupVersionKind, Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.sandbox import Sandbox
from pergola.testing.waiting import PATIENCE, until
from tests.support.node_connections import CONNECTED, connect
from tests.support.node_workloads import etcd_call, etcd_pod, etcd_with_a_claim, is_ready, resolve

pytestmark = pytest.mark.node

API_SERVICE = GroupVersionKind("apiregistration.k8s.io", "v1", "APIService")


async def test_etcd_keeps_its_data_when_its_pod_is_replaced(
    node_sandbox: Sandbox, node_client: Client, node_namespace: str
) -> None:
    for obj in etcd_with_a_claim(node_namespace):
        await node_client.create(obj)
    await until(node_client, STATEFUL_SET, Key(node_namespace, "etcd"), is_ready)
    service = await node_client.get(SERVICE, Key(node_namespace, "etcd"))
    port = await node_sandbox.forward(map_at(service, "spec")["clusterIP"], 2379)
    await etcd_call(port, "put", {"key": "a2V5", "value": "dmFsdWU="})
    first = await node_client.get(POD, Key(node_namespace, "etcd-0"))

    await node_client.delete(POD, Key(node_namespace, "etcd-0"))
    await until(
        node_client,
        POD,
        Key(node_namespace, "etcd-0"),
        lambda pod: pod["metadata"]["uid"] != first["metadata"]["uid"] and is_ready(pod),
    )

    found = await etcd_call(port, "range", {"key": "a2V5"})
    assert [pair["value"] for pair in found["kvs"]] == ["dmFsdWU="]


async def test_a_service_is_reached_by_its_name(
    node_sandbox: Sandbox, node_client: Client, node_namespace: str
) -> None:
    service, _ = etcd_with_a_claim(node_namespace)
    created = await node_client.create(service)
    dns = await node_sandbox.forward("10.0.0.10", 53)

    found = await resolve(dns, f"etcd.{node_namespace}.svc.cluster.local")

    assert found == map_at(created, "spec")["clusterIP"]


async def test_the_log_of_a_container_can_be_read(node_client: Client, node_namespace: str) -> None:
    await node_client.create(etcd_pod(node_namespace))
    await until(node_client, POD, Key(node_namespace, "etcd"), is_ready)

    log = await node_client.get_raw(f"/api/v1/namespaces/{node_namespace}/pods/etcd/log")

    assert b"ready to serve client requests" in log


@pytest.mark.parametrize("image", ["registry.k8s.io/etcd:3.5.21-0", "registry.k8s.io/etcd"])
async def test_an_image_is_available_under_any_tag(
    node_client: Client, node_namespace: str, image: str
) -> None:
    await node_client.create(etcd_pod(node_namespace, image=image))

    pod = await until(node_client, POD, Key(node_namespace, "etcd"), is_ready)

    assert [c["image"] for c in maps_at(pod, "spec", "containers")] == [image]


async def test_an_unknown_image_is_reported_with_a_hint(
    node_client: Client, node_namespace: str
) -> None:
    image = "registry.example.com/no/such:v1"
    await node_client.create(etcd_pod(node_namespace, image=image))

    await until(
        node_client,
        POD,
        Key(node_namespace, "etcd"),
        lambda pod: (
            "ErrImageNeverPull"
            in [
                map_at(status, "state", "waiting").get("reason")
                for status in maps_at(pod, "status", "containerStatuses")
            ]
        ),
    )
    async with asyncio.timeout(PATIENCE):
        while not (hints := await hints_in(node_client, node_namespace)):
            pass  # another program writes the Events
    assert hints == [
        f'this sandbox has no image "{image}"; `pergola sandbox images` lists all images'
    ]


async def hints_in(client: Client, namespace: str) -> list[str]:
    """Return the notes about images that are not available."""
    events = await client.list(EVENT, namespace)
    return [event["note"] for event in events if event["reason"] == "ImageNotProvided"]


async def test_the_resource_usage_of_the_node_is_measured(node_client: Client) -> None:
    await until(
        node_client,
        API_SERVICE,
        Key("", "v1beta1.metrics.k8s.io"),
        lambda api: (
            "True"
            in [
                c["status"]
                for c in maps_at(api, "status", "conditions")
                if c["type"] == "Available"
            ]
        ),
    )

    found = await node_client.get_raw("/apis/metrics.k8s.io/v1beta1/nodes/node")

    assert set(json.loads(found)["usage"]) == {"cpu", "memory"}


async def test_a_pod_reaches_a_port_that_this_machine_offers(
    node_sandbox: Sandbox, node_client: Client, node_namespace: str
) -> None:
    reached = asyncio.Event()

    def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        address = await node_sandbox.offer(server.sockets[0].getsockname()[1])
        host, _, port = address.partition(":")

        assert await connect(node_client, node_namespace, host, int(port)) == CONNECTED

        async with asyncio.timeout(PATIENCE):
            await reached.wait()
