"""NetworkPolicies, tested by connections between pods.

Each refusal has a counterpart: the policy allows the same connection to another pod.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from pergola.api.kinds import NAMESPACE, NETWORK_POLICY, POD, SERVICE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.controllers.network_policy import Settings, network_policy
from pergola.kube.client import Client
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.sandbox.components import FELIX
from pergola.testing.namespaces import clear_namespace, create_namespace
from pergola.testing.waiting import running, until
from tests.support.node_connections import CONNECTED, REFUSED, UNKNOWN_NAME, connect
from tests.support.node_workloads import etcd_pod, etcd_with_a_claim, is_ready

# The first pod may have to wait until its image is built.
pytestmark = pytest.mark.node

PORT = 2379
L = "networking.resources.gardener.cloud/"
SITE = "test.pergola/site"
PEER = "test.pergola/peer"
ALLOWED = "allowed"


def policy(namespace: str, name: str, **spec: object) -> JsonObject:
    return {
        "apiVersion": NETWORK_POLICY.api_version,
        "kind": NETWORK_POLICY.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"podSelector": {}} | spec,
    }


async def serve(client: Client, namespace: str, annotations: dict[str, str] | None = None) -> str:
    """Run etcd behind a Service, and return the Service's address when etcd is ready."""
    service, _ = etcd_with_a_claim(namespace)
    service["metadata"]["annotations"] = annotations or {}
    created = await client.create(service)
    await client.create(etcd_pod(namespace))
    await until(client, POD, Key(namespace, "etcd"), is_ready)
    return str(map_at(created, "spec")["clusterIP"])


@pytest.fixture
async def peer_namespace(node_client: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Yield another fresh namespace on the node."""
    name = await create_namespace(node_client, f"peer-{request.node.name}")
    yield name
    await clear_namespace(node_client, name)


async def test_a_default_deny_admits_only_callers_with_the_allowed_label(
    node_client: Client, node_namespace: str
) -> None:
    host = await serve(node_client, node_namespace)
    assert await connect(node_client, node_namespace, host, PORT) == CONNECTED

    await node_client.create(policy(node_namespace, "deny-all", policyTypes=["Ingress"]))
    callers = {"podSelector": {"matchLabels": {"caller": "welcome"}}}
    rule = {"from": [callers], "ports": [{"port": PORT}]}
    await node_client.create(policy(node_namespace, "allow", ingress=[rule]))
    outcomes = await asyncio.gather(
        connect(node_client, node_namespace, host, PORT, {"caller": "welcome"}),
        connect(node_client, node_namespace, host, PORT, {"caller": "stranger"}),
    )

    assert list(outcomes) == [CONNECTED, REFUSED]
    pod = await node_client.get(POD, Key(node_namespace, "etcd"))
    assert is_ready(pod)  # probes come from the node, which policies never refuse


@pytest.mark.soak("node")
async def test_policies_stay_in_force_while_felix_restarts(
    node_sandbox: Sandbox, node_client: Client, node_namespace: str
) -> None:
    host = await serve(node_client, node_namespace)
    await node_client.create(policy(node_namespace, "deny-all", policyTypes=["Ingress"]))
    assert await connect(node_client, node_namespace, host, PORT) == REFUSED

    await node_sandbox.kill(FELIX)
    try:
        # A new policy has to wait, and the new pod has no rules yet.
        callers = {"podSelector": {"matchLabels": {"caller": "welcome"}}}
        await node_client.create(policy(node_namespace, "allow", ingress=[{"from": [callers]}]))
        attempts = [
            asyncio.create_task(connect(node_client, node_namespace, host, PORT, labels))
            for labels in ({"caller": "welcome"}, {"caller": "stranger"})
        ]
    finally:
        await node_sandbox.restart(FELIX)

    assert await asyncio.gather(*attempts) == [CONNECTED, REFUSED]


@pytest.mark.soak("node")
async def test_egress_is_refused_except_to_dns(node_client: Client, node_namespace: str) -> None:
    await serve(node_client, node_namespace)
    host = f"etcd.{node_namespace}.svc.cluster.local"
    dns = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
        "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
    }
    ports = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": "dns-tcp"}]
    for name, rules in (("mute", []), ("dns-only", [{"to": [dns], "ports": ports}])):
        selector = {"matchLabels": {"caller": name}}
        await node_client.create(
            policy(node_namespace, name, podSelector=selector, policyTypes=["Egress"], egress=rules)
        )

    outcomes = await asyncio.gather(
        connect(node_client, node_namespace, host, PORT),
        connect(node_client, node_namespace, host, PORT, {"caller": "dns-only"}),
        connect(node_client, node_namespace, host, PORT, {"caller": "mute"}),
    )

    assert list(outcomes) == [CONNECTED, REFUSED, UNKNOWN_NAME]


@pytest.mark.soak("node")
async def test_only_the_exception_of_an_address_block_is_refused(
    node_client: Client, node_namespace: str
) -> None:
    host = await serve(node_client, node_namespace)
    pod = await node_client.get(POD, Key(node_namespace, "etcd"))
    everywhere = {"cidr": "0.0.0.0/0"}
    except_there = everywhere | {"except": [f"{pod['status']['podIP']}/32"]}
    for name, block in (("everywhere", everywhere), ("except-there", except_there)):
        await node_client.create(
            policy(
                node_namespace,
                name,
                podSelector={"matchLabels": {"caller": name}},
                policyTypes=["Egress"],
                egress=[{"to": [{"ipBlock": block}], "ports": [{"port": 2000, "endPort": 3000}]}],
            )
        )

    outcomes = await asyncio.gather(
        connect(node_client, node_namespace, host, PORT, {"caller": "everywhere"}),
        connect(node_client, node_namespace, host, PORT, {"caller": "except-there"}),
    )

    assert list(outcomes) == [CONNECTED, REFUSED]


async def test_labels_for_a_service_admit_callers_through_a_default_deny(
    node_client: Client, node_namespace: str, peer_namespace: str
) -> None:
    """The controller `networkpolicy` writes the policies (spec 11 §4)."""
    for namespace, label in ((node_namespace, SITE), (peer_namespace, PEER)):
        labels = {"metadata": {"labels": {label: node_namespace}}}
        await node_client.patch(NAMESPACE, Key("", namespace), labels)
        types = ["Ingress", "Egress"]
        await node_client.create(policy(namespace, "deny-all", policyTypes=types))
    site = {"matchLabels": {SITE: node_namespace}}
    # The policies are in force before the callers start.
    settings = Settings(namespace_selectors=(site,), only_for_matching_pods=False)
    controller = network_policy(node_client, settings, metrics=Metrics())
    peers = [{"matchLabels": {PEER: node_namespace}}]
    annotations = {
        f"{L}namespace-selectors": json.dumps(peers),
        f"{L}pod-label-selector-namespace-alias": "all-sites",
        f"{L}from-all-clients-allowed-ports": json.dumps([{"port": PORT, "protocol": "TCP"}]),
    }
    async with running(controller):
        host = await serve(node_client, node_namespace, annotations)
        for key in (
            Key(node_namespace, "ingress-to-etcd-tcp-2379"),
            Key(node_namespace, "egress-to-etcd-tcp-2379"),
            Key(node_namespace, "egress-to-etcd-tcp-2379-via-all-clients"),
            Key(node_namespace, f"ingress-to-etcd-tcp-2379-from-{peer_namespace}"),
            Key(peer_namespace, f"egress-to-{node_namespace}-etcd-tcp-2379"),
        ):
            await until(node_client, NETWORK_POLICY, key, lambda _: True)

        outcomes = await asyncio.gather(
            *(
                connect(node_client, namespace, host, PORT, dict.fromkeys(labels, ALLOWED))
                for namespace, *labels in (
                    (node_namespace, f"{L}to-etcd-tcp-2379"),
                    (node_namespace, f"{L}to-all-clients"),
                    (node_namespace,),
                    (peer_namespace, f"{L}to-all-sites-etcd-tcp-2379"),
                    (peer_namespace, f"{L}to-etcd-tcp-2379"),
                )
            )
        )

    assert list(outcomes) == [CONNECTED, CONNECTED, REFUSED, CONNECTED, REFUSED]


@pytest.mark.soak("node")
async def test_a_service_that_is_open_to_the_world_needs_no_label(
    node_client: Client, node_namespace: str, peer_namespace: str
) -> None:
    await node_client.create(policy(node_namespace, "deny-all", policyTypes=["Ingress"]))
    controller = network_policy(
        node_client, Settings(namespaces=(node_namespace,)), metrics=Metrics()
    )
    async with running(controller):
        host = await serve(node_client, node_namespace)
        assert await connect(node_client, peer_namespace, host, PORT) == REFUSED

        world = {f"{L}from-world-to-ports": json.dumps([{"port": str(PORT), "protocol": "TCP"}])}
        await node_client.patch(
            SERVICE, Key(node_namespace, "etcd"), {"metadata": {"annotations": world}}
        )
        opened = Key(node_namespace, "ingress-to-etcd-from-world")
        await until(node_client, NETWORK_POLICY, opened, lambda _: True)

        assert await connect(node_client, peer_namespace, host, PORT) == CONNECTED
