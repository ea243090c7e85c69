"""The stand-in for istiod and the real Envoy at work: the gateway decrypts and routes requests."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from pergola.api.kinds import (
    CONFIG_MAP,
    DESTINATION_RULE,
    GATEWAY,
    POD,
    SERVICE_ACCOUNT,
    VIRTUAL_SERVICE,
)
from pergola.api.objects import JsonObject, Key
from pergola.garden.components.service_mesh.filters import filters
from pergola.kube.client import Client
from pergola.pki import Authority, Pair
from pergola.sandbox import Sandbox
from pergola.testing.shared import require_images
from pergola.testing.waiting import PATIENCE, until
from tests.support.garden import landscape
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

IMAGE = "registry.example/pergola"
PORT = 8080
KUBERNETES = "kubernetes.default.svc.cluster.local"
LIFETIME = timedelta(days=1)
# A server that answers with its name and the request, with TLS if it has a certificate.
ECHO = """
import http.server, json, os, ssl

class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        found = {"server": os.environ["NAME"], "path": self.path, "headers": headers}
        body = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(("", 8080), Echo)
if os.path.exists("/tls/tls.key"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


class Answer(NamedTuple):
    """The status and the content of an answer, in which servers report the request."""

    status: int
    echo: JsonObject


async def test_a_gateway_decrypts_connections_and_routes_their_requests(
    node_sandbox: Sandbox, node_client: Client, istio: str, tmp_path: Path
) -> None:
    require_images("pergola")
    now = datetime.now(UTC)
    authority = Authority.create("hosts", now, LIFETIME)
    trusted = await until(node_client, CONFIG_MAP, Key(istio, "kube-root-ca.crt"), lambda obj: True)
    cluster_ca = secret(istio, "kubernetes", {"cacert": trusted["data"]["ca.crt"]})
    objects = (*secrets(istio, authority, now), *servers(istio), *routes(istio), *patches(istio))
    for obj in (*objects, cluster_ca):
        await node_client.create(obj)
    await create_gateway(node_client, istio)
    for name in ("plain", "secure", "gateway"):
        await until(node_client, POD, Key(istio, name), is_ready)
    port = await port_of(node_sandbox, node_client, Key(istio, "gateway"))
    anonymous = trusting(authority, tmp_path)
    known = trusting(authority, tmp_path, authority.issue_client("alice", [], now, LIFETIME))
    other = Authority.create("other", now, LIFETIME)
    stranger = trusting(authority, tmp_path, other.issue_client("mallory", [], now, LIFETIME))

    # Routes by path, to a Service without TLS
    assert (await get(port, "dashboard", "/-/reload", anonymous)).status == 403
    answer = await get_routed(port, "dashboard", "/start?now", anonymous)
    assert (answer.echo["server"], answer.echo["path"]) == ("plain", "/start?now")
    # A Service with TLS, whose certificate has to be valid
    answer = await get_routed(port, "api", "/version", anonymous)
    assert answer.echo["server"] == "secure"
    assert (await get(port, "mistrusted", "/", anonymous)).status == 503
    # An API server, which identifies clients by their tokens
    path = "/api/v1/configmaps"
    assert (await get_routed(port, "kubernetes", path, anonymous)).status == 403
    bearer = {"Authorization": f"Bearer {await token(node_client, istio)}"}
    answer = await get(port, "kubernetes", path, anonymous, bearer)
    assert answer.echo["kind"] == "ConfigMapList"
    # Certificates of clients are verified and forwarded; claims in headers are dropped
    claim = {"X-Forwarded-Client-Cert": "Subject=admin"}
    answer = await get(port, "api", "/version", anonymous, claim)
    assert "x-forwarded-client-cert" not in answer.echo["headers"]
    answer = await get(port, "api", "/version", known, claim)
    assert 'Subject="CN=alice"' in answer.echo["headers"]["x-forwarded-client-cert"]
    # The same with the EnvoyFilters of a Garden
    claim = {"X-Remote-User": "admin"}
    assert answer.echo["headers"]["x-remote-user"] == "alice"
    answer = await get(port, "api", "/version", anonymous, claim)
    assert "x-remote-user" not in answer.echo["headers"]
    answer = await get(port, "api", "/", anonymous, {"Host": "dashboard.example.com"})
    assert answer.status == HTTPStatus.MISDIRECTED_REQUEST
    with pytest.raises(aiohttp.ClientError):
        await get(port, "api", "/version", stranger)
    assert (await get(port, "closed", "/", known)).status == 200
    with pytest.raises(aiohttp.ClientError):
        await get(port, "closed", "/", anonymous)


def secrets(namespace: str, authority: Authority, now: datetime) -> Iterator[JsonObject]:
    """Yield the certificates of the hosts and of the Service with TLS."""
    internal = Authority.create("internal", now, LIFETIME)
    hosts = authority.issue_server("hosts", ["*.example.com"], now, LIFETIME)
    secure = internal.issue_server("secure", ["secure"], now, LIFETIME)
    ca, internal_ca = authority.pair.public.decode(), internal.pair.public.decode()
    yield secret(namespace, "hosts", {**files(hosts), "ca.crt": ca})
    yield secret(namespace, "secure", files(secure))
    yield secret(namespace, "internal", {"cacert": internal_ca})
    yield secret(namespace, "wrong", {"cacert": ca})


def files(pair: Pair) -> dict[str, str]:
    return {"tls.crt": pair.public.decode(), "tls.key": pair.private.decode()}


def secret(namespace: str, name: str, data: dict[str, str]) -> JsonObject:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}


def servers(namespace: str) -> Iterator[JsonObject]:
    """Yield a server without and one with TLS, and a second Service of the latter."""
    for name in ("plain", "secure"):
        yield echo(namespace, name)
        yield service(namespace, name, {"app": name}, port=443, target=PORT)
    yield service(namespace, "mistrusted", {"app": "secure"}, port=443, target=PORT)


def echo(namespace: str, name: str) -> JsonObject:
    container: JsonObject = {
        "name": "echo",
        "image": IMAGE,
        "command": ["python3", "-c", ECHO],
        "env": [{"name": "NAME", "value": name}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "securityContext": restricted(),
        "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
    }
    volume = {"name": "tls", "secret": {"secretName": name, "optional": True}}
    return pod(namespace, name, {"app": name}, {"containers": [container], "volumes": [volume]})


def routes(namespace: str) -> Iterator[JsonObject]:
    """Yield a Gateway with all hosts, and their routes, as a Garden has them."""
    modes = {
        "SIMPLE": ("dashboard", "mistrusted", "kubernetes"),
        "OPTIONAL_MUTUAL": ("api",),
        "MUTUAL": ("closed",),
    }
    tls = [server(mode, *names) for mode, names in modes.items()]
    spec: JsonObject = {"selector": INGRESS, "servers": tls}
    yield istio_object(GATEWAY, namespace, "ingress", spec)
    reload = {"match": [{"uri": {"prefix": "/-/reload"}}], "directResponse": {"status": 403}}
    yield host(namespace, "dashboard", reload, to("plain"))
    yield host(namespace, "closed", to("plain"))
    for name, destination, trusted, sni in (
        ("api", "secure", "internal", "secure"),
        ("mistrusted", "mistrusted", "wrong", "secure"),
        ("kubernetes", KUBERNETES, "kubernetes", KUBERNETES),
    ):
        yield host(namespace, name, to(destination))
        settings = {"mode": "SIMPLE", "credentialName": trusted, "sni": sni}
        pool = {"http": {"useClientProtocol": True}}
        policy = {"tls": settings, "connectionPool": pool}
        rule: JsonObject = {"host": destination, "trafficPolicy": policy}
        yield istio_object(DESTINATION_RULE, namespace, name, rule)


def patches(namespace: str) -> Iterator[JsonObject]:
    """Yield the EnvoyFilters of a Garden whose gateway decrypts connections."""
    for found in filters(landscape()):
        metadata = {**found["metadata"], "namespace": namespace}
        # The gateway of this test has fewer labels.
        spec = {**found["spec"], "workloadSelector": {"labels": INGRESS}}
        yield {**found, "metadata": metadata, "spec": spec}


def server(mode: str, *names: str) -> JsonObject:
    return {
        "hosts": [f"{name}.example.com" for name in names],
        "port": {"name": mode.lower(), "number": 443, "protocol": "HTTPS"},
        "tls": {"mode": mode, "credentialName": "hosts"},
    }


def host(namespace: str, name: str, *rules: JsonObject) -> JsonObject:
    spec = {"gateways": ["ingress"], "hosts": [f"{name}.example.com"], "http": list(rules)}
    return istio_object(VIRTUAL_SERVICE, namespace, name, spec)


def to(name: str) -> JsonObject:
    return {"route": [{"destination": {"host": name, "port": {"number": 443}}}]}


def trusting(authority: Authority, folder: Path, client: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.pair.public.decode())
    if client is not None:
        file = folder / "client.pem"
        file.write_bytes(client.public + client.private)
        context.load_cert_chain(file)
    return context


async def token(client: Client, namespace: str) -> str:
    """Return a token of istiod's account, which may list ConfigMaps."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    key = Key(namespace, "istiod")
    answer = await client.create_subresource(SERVICE_ACCOUNT, key, "token", body)
    return str(answer["status"]["token"])


async def get_routed(port: int, name: str, path: str, trust: ssl.SSLContext) -> Answer:
    """Request a path once the gateway knows an endpoint of its Service, and return the answer.

    kube-proxy and istiod notice later than the test that a pod is ready.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await get(port, name, path, trust)
            if answer.status != HTTPStatus.SERVICE_UNAVAILABLE:
                return answer


async def get(
    port: int, name: str, path: str, trust: ssl.SSLContext, headers: dict[str, str] | None = None
) -> Answer:
    """Request a path of a host from the gateway."""
    host = f"{name}.example.com"
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            f"https://127.0.0.1:{port}{path}",
            headers={"Host": host, **(headers or {})},
            server_hostname=host,
            ssl=trust,
        ) as answer,
    ):
        content = await answer.read()
        return Answer(answer.status, json.loads(content) if content[:1] == b"{" else {})
