"""The health of a virtual API server, by the kubeconfig in a Secret (spec 21 §2.3, §5.4)."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.manifests.shoot_access import requests_token
from pergola.operator.care import Probe, Probing, probe
from pergola.operator.copies import Copies
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.pki import Authority, Template, Token, kubeconfig
from pergola.runtime.controlling.unit import Unit
from pergola.sandbox import Sandbox
from pergola.testing.waiting import PATIENCE, running, settled
from tests.support.proxy import CuttableProxy

KEY = Key("garden", "gardener-internal")
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


class Access:
    """The Secret with the kubeconfig of the virtual cluster."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def put(self, content: JsonObject | bytes) -> None:
        text = content if isinstance(content, bytes) else dump(content).encode()
        secret: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": KEY.name,
                "namespace": KEY.namespace,
                "labels": requests_token(),
            },
            "data": {"kubeconfig": base64.b64encode(text).decode()},
        }
        try:
            await self.client.create(secret)
        except AlreadyExists:
            await self.client.patch(SECRET, KEY, {"data": secret["data"]})

    async def delete(self) -> None:
        try:
            await self.client.delete(SECRET, KEY)
        except NotFound:
            return


@pytest.fixture
async def access(runtime: Client) -> AsyncIterator[Access]:
    found = Access(runtime)
    yield found
    await found.delete()


class Server(NamedTuple):
    """The API server as care sees it, and a unit that caches the Secrets with its kubeconfigs."""

    probe: Probing
    copies: Unit


@pytest.fixture
async def server(runtime: Client) -> AsyncIterator[Server]:
    copies = Copies(runtime)
    secrets = Unit("secrets", caches=[copies.of(SECRET, "garden")])
    async with running(secrets), VirtualCluster(copies.client) as cluster:
        yield Server(partial(probe, cluster), secrets)


@pytest.fixture
def administrator(garden_sandbox: Sandbox) -> JsonObject:
    """Return the kubeconfig of the sandbox, which is the virtual cluster, too."""
    content = parse(Path(garden_sandbox.kubeconfig).read_text())
    assert isinstance(content, dict)
    return content


async def probed(server: Server, access: Access) -> Probe | None:
    """Wait until a change of the Secret is noticed, and probe the server."""
    await settled(server.copies, access.client)
    async with asyncio.timeout(PATIENCE):
        return await server.probe()


AUTHORITY = Authority.create("ca", NOW, DAY)


@asynccontextmanager
async def answering(
    handle: Callable[[web.Request], Awaitable[web.Response]], folder: Path
) -> AsyncIterator[str]:
    """Serve an API server whose health endpoint a test answers; yield its address."""
    app = web.Application()
    app.router.add_get("/healthz", handle)
    template = Template(common_name="api", hosts=("127.0.0.1",), lifetime=DAY, for_server=True)
    pair = AUTHORITY.issue(template, NOW)
    (folder / "api.pem").write_bytes(pair.public + pair.private)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "api.pem")
    server = TestServer(app, host="127.0.0.1", scheme="https")
    await server.start_server(ssl=context)
    try:
        yield str(server.make_url("")).rstrip("/")
    finally:
        await server.close()


def simple(server: str, token: str = "given") -> JsonObject:  # noqa: S107 - of a test
    return kubeconfig("garden", server, AUTHORITY.pair.public, Token(token))


async def test_a_healthy_api_server_is_reported(
    access: Access, server: Server, administrator: JsonObject
) -> None:
    await access.put(administrator)
    found = await probed(server, access)
    assert found is not None
    assert (found.code, found.text) == (200, "ok")
    assert found.seconds > 0


async def test_without_a_secret_there_is_no_access(access: Access, server: Server) -> None:
    assert await probed(server, access) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"no kubeconfig",
        simple("https://example.org", ""),
        {**simple("https://example.org"), "current-context": "other"},
        simple("ftp://example.org"),
    ],
    ids=["empty", "broken", "text", "no token", "no context", "no server"],
)
async def test_an_unusable_kubeconfig_gives_no_access(
    access: Access, server: Server, content: JsonObject | bytes
) -> None:
    await access.put(content)
    assert await probed(server, access) is None


async def test_a_kubeconfig_must_not_run_programs(
    access: Access, server: Server, administrator: JsonObject
) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true"}
    users = [{"name": each["name"], "user": {"exec": plugin}} for each in administrator["users"]]
    await access.put({**administrator, "users": users})
    assert await probed(server, access) is None


async def test_a_new_kubeconfig_takes_effect_at_the_next_probe(
    access: Access, server: Server, administrator: JsonObject, tmp_path: Path
) -> None:
    tokens = []

    async def handle(request: web.Request) -> web.Response:
        tokens.append(request.headers["Authorization"])
        return web.Response(text="fine")

    async with answering(handle, tmp_path) as address:
        await access.put(simple(address, "old"))
        assert (await probed(server, access) or Probe(0)).text == "fine"
        await access.put(simple(address, "new"))
        await probed(server, access)
    assert tokens == ["Bearer old", "Bearer new"]
    await access.put(administrator)
    assert (await probed(server, access) or Probe(0)).text == "ok"
    await access.delete()
    assert await probed(server, access) is None


async def test_the_answer_of_an_unhealthy_api_server_is_reported(
    access: Access, server: Server, tmp_path: Path
) -> None:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(status=500, text="[-]etcd failed: reason withheld")

    async with answering(handle, tmp_path) as address:
        await access.put(simple(address))
        found = await probed(server, access)
    assert found is not None
    assert (found.code, found.text) == (500, "[-]etcd failed: reason withheld")


async def test_an_api_server_without_an_answer_is_reported(
    access: Access,
    server: Server,
    administrator: JsonObject,
    garden_sandbox: Sandbox,
) -> None:
    async with CuttableProxy(load(garden_sandbox.kubeconfig)) as proxy:
        clusters = [
            {"name": each["name"], "cluster": {**each["cluster"], "server": proxy.config.server}}
            for each in administrator["clusters"]
        ]
        await access.put({**administrator, "clusters": clusters})
        assert (await probed(server, access) or Probe(0)).code == 200
        proxy.refuse()
        proxy.cut()
        found = await probed(server, access)
        assert found is not None
        assert found.code == 0
        assert found.text.startswith(f"cannot reach {proxy.config.server}")
        proxy.accept()
        assert (await probed(server, access) or Probe(0)).code == 200


async def test_no_answer_contains_a_token(access: Access, server: Server) -> None:
    await access.put(simple("https://127.0.0.1:1", "s3cret"))
    found = await probed(server, access)
    assert found is not None
    assert "s3cret" not in found.text
