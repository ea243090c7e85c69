"""The stand-in for istiod and the real Envoy at work: connections are routed by server name."""

import asyncio
import ssl
from contextlib import suppress

import pytest

from pergola.api.kinds import DESTINATION_RULE, GATEWAY, POD, VIRTUAL_SERVICE
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.sandbox import Sandbox
from pergola.testing.shared import require_images
from pergola.testing.waiting import PATIENCE, until
from tests.support.istio_gateway import (
    INGRESS,
    create_gateway,
    istio_object,
    pod,
    port_of,
    restricted,
    service,
)
from tests.support.node_workloads import is_ready

pytestmark = [pytest.mark.soak("node"), pytest.mark.node]

# A stand-in with its own certificate, by which the test recognizes it.
TLS_SERVER = "europe-docker.pkg.dev/gardener-project/releases/3rd/credativ/plutono:v7.5.50"
SERVER_PORT = 3000


async def test_tls_connections_reach_the_server_that_their_name_selects(
    node_sandbox: Sandbox, node_client: Client, istio: str
) -> None:
    require_images("plutono")
    await node_client.create(gateway(istio))
    for name in ("one", "two"):
        for obj in (server(istio, name), *route(istio, name)):
            await node_client.create(obj)
    await create_gateway(node_client, istio)
    for name in ("one", "two", "gateway"):
        await until(node_client, POD, Key(istio, name), is_ready)

    entrance = await port_of(node_sandbox, node_client, Key(istio, "gateway"))
    for name in ("one", "two"):
        direct = await port_of(node_sandbox, node_client, Key(istio, name))
        expected = await certificate(direct, "")
        assert await routed_certificate(entrance, f"{name}.example.com") == expected
    with pytest.raises(ConnectionError):
        await certificate(entrance, "three.example.com")


def gateway(namespace: str) -> JsonObject:
    server = {
        "hosts": ["*.example.com"],
        "port": {"name": "tls", "number": 443, "protocol": "TLS"},
        "tls": {"mode": "PASSTHROUGH"},
    }
    spec = {"selector": INGRESS, "servers": [server]}
    return istio_object(GATEWAY, namespace, "ingress", spec)


def route(namespace: str, name: str) -> list[JsonObject]:
    """Return a Service with the objects that route a server name to it."""
    host = f"{name}.{namespace}.svc.cluster.local"
    rule = {
        "match": [{"port": 443, "sniHosts": [f"{name}.example.com"]}],
        "route": [{"destination": {"host": host, "port": {"number": 443}}}],
    }
    policy = {"connectionPool": {"tcp": {"tcpKeepalive": {"time": "7200s", "interval": "75s"}}}}
    virtual_service = {
        "hosts": [f"{name}.example.com"],
        "gateways": ["ingress"],
        "exportTo": ["*"],
        "tls": [rule],
    }
    return [
        service(namespace, name, {"app": name}, port=443, target=SERVER_PORT),
        istio_object(VIRTUAL_SERVICE, namespace, name, virtual_service),
        istio_object(DESTINATION_RULE, namespace, name, {"host": host, "trafficPolicy": policy}),
    ]


def server(namespace: str, name: str) -> JsonObject:
    container: JsonObject = {
        "name": "server",
        "image": TLS_SERVER,
        "readinessProbe": {"tcpSocket": {"port": SERVER_PORT}, "periodSeconds": 1},
        "securityContext": restricted(),
    }
    return pod(namespace, name, {"app": name}, {"containers": [container]})


async def routed_certificate(port: int, name: str) -> bytes:
    """Return a certificate once the gateway knows an endpoint of the Service."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(ConnectionError):
                return await certificate(port, name)


async def certificate(port: int, name: str) -> bytes:
    """Return the certificate of the server that a TLS connection with a server name reaches."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found
