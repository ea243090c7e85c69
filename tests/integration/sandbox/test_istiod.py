"""The stand-in for istiod on a real API server serves gateways and namespaces."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from pergola.api.kinds import CONFIG_MAP, GATEWAY, POD, SECRET, VIRTUAL_SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.pki import Authority
from pergola.runtime.controlling.unit import Unit
from pergola.sandbox.istiod.discovery import Discovery
from pergola.sandbox.istiod.trust import RootCertificates, apply_authority
from pergola.testing.waiting import running, settled, until
from tests.support.istio_crds import install_istio_crds

Gateways = TestClient[web.Request, web.Application]
ROOT = "istio-ca-root-cert"


@pytest.fixture
async def gateways(lone_client: Client, fresh: str) -> AsyncIterator[Gateways]:
    """Yield an HTTP client of istiod in a pod of the namespace; istiod knows one Gateway."""
    await install_istio_crds(lone_client)
    await create_pod(lone_client, fresh, "127.0.0.1")
    server = {"hosts": ["*"], "port": {"number": 443}, "tls": {"mode": "PASSTHROUGH"}}
    await lone_client.create(
        istio_object(GATEWAY, fresh, {"selector": labels(fresh), "servers": [server]})
    )
    discovery = Discovery(lone_client)
    app = web.Application()
    app.add_routes(discovery.routes())
    async with (
        running(Unit("discovery", caches=discovery.caches)),
        TestClient(TestServer(app)) as client,
    ):
        yield client


async def create_pod(client: Client, namespace: str, address: str) -> None:
    """Create a pod with an address, as the kubelet would report it."""
    meta = {"name": "gateway", "namespace": namespace}
    spec = {"containers": [{"name": "istio-proxy", "image": "proxyv2"}]}
    await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    status = {"podIP": address, "podIPs": [{"ip": address}]}
    await client.patch(POD, Key(namespace, "gateway"), {"status": status}, subresource="status")


def labels(namespace: str) -> dict[str, str]:
    """Return the labels of a gateway that only the Gateway of one namespace selects."""
    return {"istio": namespace}


def istio_object(kind: GroupVersionKind, namespace: str, spec: JsonObject) -> JsonObject:
    meta = {"name": "api", "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


def virtual_service(namespace: str, name: str) -> JsonObject:
    rule = {
        "match": [{"sniHosts": [name]}],
        "route": [{"destination": {"host": "api", "port": {"number": 443}}}],
    }
    return istio_object(VIRTUAL_SERVICE, namespace, {"gateways": ["api"], "tls": [rule]})


async def listeners(
    gateways: Gateways, selected: str, version: str = "", *, namespace: str = ""
) -> JsonObject:
    """Request the listeners as Envoy does, for a gateway that one namespace's Gateway selects."""
    metadata = {"NAMESPACE": namespace or selected, "LABELS": labels(selected)}
    body = {"version_info": version, "node": {"id": "router", "metadata": metadata}}
    async with gateways.post("/v3/discovery:listeners", json=body) as answer:
        assert answer.status == 200
        content: JsonObject = await answer.json()
        return content


def names(answer: JsonObject) -> list[str]:
    """Return the server names of all listeners."""
    return [
        name
        for listener in answer["resources"]
        for chain in listener["filter_chains"]
        for name in chain["filter_chain_match"]["server_names"]
    ]


async def test_a_gateway_with_the_current_version_waits_for_the_next_one(
    gateways: Gateways, lone_client: Client, fresh: str
) -> None:
    first = await listeners(gateways, fresh)
    waiting = asyncio.create_task(listeners(gateways, fresh, first["version_info"]))
    await lone_client.create(virtual_service(fresh, "one.example.com"))
    second = await waiting
    assert (names(first), names(second)) == ([], ["one.example.com"])

    waiting = asyncio.create_task(listeners(gateways, fresh, second["version_info"]))
    await lone_client.patch(
        VIRTUAL_SERVICE, Key(fresh, "api"), virtual_service(fresh, "two.example.com")
    )
    assert names(await waiting) == ["two.example.com"]


async def test_routes_that_are_not_exported_stay_in_their_namespace(
    gateways: Gateways, lone_client: Client, fresh: str, other: str
) -> None:
    private = virtual_service(fresh, "one.example.com")
    private["spec"]["exportTo"] = ["."]
    before = await listeners(gateways, fresh)
    waiting = asyncio.create_task(listeners(gateways, fresh, before["version_info"]))
    await lone_client.create(private)

    assert names(await waiting) == ["one.example.com"]
    await create_pod(lone_client, other, "127.0.0.1")
    assert names(await listeners(gateways, fresh, namespace=other)) == []


async def test_a_gateway_waits_until_the_address_of_its_pod_is_known(
    gateways: Gateways, lone_client: Client, fresh: str, other: str
) -> None:
    waiting = asyncio.create_task(listeners(gateways, fresh, namespace=other))
    assert names(await listeners(gateways, fresh)) == []
    assert not waiting.done()

    await create_pod(lone_client, other, "127.0.0.1")

    assert names(await waiting) == []


async def test_a_renewed_certificate_reaches_the_gateway(
    gateways: Gateways, lone_client: Client, fresh: str
) -> None:
    server = {
        "hosts": ["web.example.com"],
        "port": {"name": "tls", "number": 443, "protocol": "HTTPS"},
        "tls": {"mode": "SIMPLE", "credentialName": "web"},
    }
    await lone_client.patch(
        GATEWAY, Key(fresh, "api"), {"spec": {"selector": labels(fresh), "servers": [server]}}
    )
    first, second = certificate(), certificate()
    waiting = asyncio.create_task(until_keys(gateways, fresh, [first["tls.key"]]))
    await lone_client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "web", "namespace": fresh},
            "stringData": first,
        }
    )
    answer = await waiting

    waiting = asyncio.create_task(listeners(gateways, fresh, answer["version_info"]))
    await lone_client.patch(SECRET, Key(fresh, "web"), {"stringData": second})
    assert keys(await waiting) == [second["tls.key"]]


async def until_keys(gateways: Gateways, selected: str, desired: list[str]) -> JsonObject:
    """Request the listeners, and each newer version of them, until they have these keys."""
    answer = await listeners(gateways, selected)
    while keys(answer) != desired:
        answer = await listeners(gateways, selected, answer["version_info"])
    return answer


def certificate() -> dict[str, str]:
    now, lifetime = datetime.now(UTC), timedelta(days=1)
    authority = Authority.create("test", now, lifetime)
    pair = authority.issue_server("web", ["web.example.com"], now, lifetime)
    return {"tls.crt": pair.public.decode(), "tls.key": pair.private.decode()}


def keys(answer: JsonObject) -> list[str]:
    """Return the private keys of all servers that decrypt connections."""
    return [
        pair["private_key"]["inline_string"]
        for listener in answer["resources"]
        for chain in listener["filter_chains"]
        if "transport_socket" in chain  # none for servers that pass connections through
        for pair in chain["transport_socket"]["typed_config"]["common_tls_context"][
            "tls_certificates"
        ]
    ]


async def test_every_namespace_gets_the_certificate_and_keeps_it(
    lone_client: Client, fresh: str
) -> None:
    authority = await apply_authority(lone_client, fresh, datetime.now(UTC))
    unit = RootCertificates(lone_client, authority).unit()
    expected = {"root-cert.pem": authority.pair.public.decode()}

    async with running(unit):
        found = await until(lone_client, CONFIG_MAP, Key(fresh, ROOT), lambda obj: True)
        assert map_at(found, "data") == expected
        await lone_client.patch(CONFIG_MAP, Key(fresh, ROOT), {"data": {"root-cert.pem": "mine"}})
        await until(lone_client, CONFIG_MAP, Key(fresh, ROOT), lambda o: o["data"] == expected)
        await lone_client.delete(CONFIG_MAP, Key(fresh, ROOT))
        await until(lone_client, CONFIG_MAP, Key(fresh, ROOT), lambda obj: True)
        await settled(unit, lone_client)


async def test_all_replicas_have_the_same_authority(lone_client: Client, fresh: str) -> None:
    first, second = await asyncio.gather(
        *(apply_authority(lone_client, fresh, datetime.now(UTC)) for _ in range(2))
    )

    assert first.pair == second.pair
