"""Services of type LoadBalancer, reached from this machine."""

import pytest

from pergola.api.kinds import POD, SERVICE
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.kube.client import Client
from pergola.testing.waiting import until
from tests.support.node_workloads import etcd_call, etcd_pod, is_ready

pytestmark = pytest.mark.node


def service(namespace: str, name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": "etcd"},
            "ports": [{"name": "client", "port": 2379}],
        },
    }


def ingress(obj: JsonObject) -> list[JsonObject]:
    return maps_at(obj, "status", "loadBalancer", "ingress")


async def test_two_services_with_the_same_port_have_separate_addresses(
    node_client: Client, node_namespace: str
) -> None:
    await node_client.create(etcd_pod(node_namespace))
    await until(node_client, POD, Key(node_namespace, "etcd"), is_ready)
    addresses = []
    for name in ("one", "other"):
        await node_client.create(service(node_namespace, name))
        found = await until(
            node_client, SERVICE, Key(node_namespace, name), lambda obj: bool(ingress(obj))
        )
        addresses.append(ingress(found)[0]["ip"])

    for number, address in enumerate(addresses):
        stored = {"key": "a2V5", "value": f"MDA{number}"}
        await etcd_call(2379, "put", stored, host=address)
    values = [await etcd_call(2379, "range", {"key": "a2V5"}, host=a) for a in addresses]

    assert len(set(addresses)) == 2
    assert all(address.startswith("127.77.") for address in addresses)
    assert [found["kvs"][0]["value"] for found in values] == ["MDA1", "MDA1"]
