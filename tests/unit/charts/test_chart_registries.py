"""Registries that require tokens, redirect to a store, or deliver something else."""

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pergola.charts import (
    Access,
    Blobs,
    ChartReference,
    Credentials,
    Limits,
    Puller,
    RegistryRefused,
    RegistryUnreachable,
    WrongDigest,
)
from pergola.charts.blobs import digest_of
from pergola.charts.pull import CHART_LAYER
from tests.support.chart_files import chart_archive

ARCHIVE = chart_archive()
LAYER = {"mediaType": CHART_LAYER, "digest": digest_of(ARCHIVE), "size": len(ARCHIVE)}
MANIFEST = orjson.dumps({"schemaVersion": 2, "layers": [LAYER]})
ANN = Credentials("ann", "secret")


@dataclass
class Registry:
    """A registry whose token service knows one user, and whose store is another server."""

    store: TestServer
    archive: bytes = ARCHIVE
    host: str = ""
    scheme: str = ""
    status: int = 0
    seen: list[tuple[str, str]] = field(default_factory=list)
    header: str = 'Bearer realm="{}",service="registry",scope="repository:dns:pull"'
    sends_pieces: bool = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        given = request.headers.get("Authorization", "")
        self.seen.append((request.path, given))
        if request.path == "/token":
            return await self._token(request, given)
        if self.status:
            return web.Response(status=self.status)
        if self.scheme and given != "Bearer granted":
            realm = f"http://{self.host}/token"
            header = self.header.format(realm)
            return web.Response(status=401, headers={"WWW-Authenticate": header})
        if "/manifests/" in request.path:
            return web.Response(body=MANIFEST)
        location = str(self.store.make_url("/archive"))
        return web.Response(status=307, headers={"Location": location})

    async def _token(self, request: web.Request, given: str) -> web.StreamResponse:
        expected = base64.b64encode(b"ann:secret").decode()
        if given != f"Basic {expected}":
            return web.Response(status=401)
        assert request.query["scope"] == "repository:dns:pull"
        assert request.query["service"] == "registry"
        if not self.sends_pieces:
            return web.json_response({"token": "granted"})
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b'{"tok', b'en": "gran', b'ted"}'):
            await response.write(piece)
            await asyncio.sleep(0.01)  # so that each is a packet of its own
        return response

    @property
    def reference(self) -> ChartReference:
        return ChartReference(self.host, "dns", "1.0.0")


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    async def deliver(request: web.Request) -> web.Response:
        found.seen.append((request.path, request.headers.get("Authorization", "")))
        return web.Response(body=found.archive)

    store = TestServer(_app(deliver))
    found = Registry(store)
    server = TestServer(_app(found.handle))
    async with store, server:
        found.host = f"{server.host}:{server.port}"
        yield found


def _app(handler: object) -> web.Application:
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)  # type: ignore[arg-type] # any coroutine function
    return app


def puller(tmp_path: Path) -> Puller:
    return Puller(Blobs(tmp_path / "cache"))


async def test_a_token_is_requested_once_and_not_sent_to_the_store(
    registry: Registry, tmp_path: Path
) -> None:
    registry.scheme = "bearer"

    chart = await puller(tmp_path).pull(registry.reference, Access(credentials=ANN))

    assert chart.name == "greeter"
    paths = [path for path, _ in registry.seen]
    manifest = "/v2/dns/manifests/1.0.0"
    assert paths == [manifest, "/token", manifest, f"/v2/dns/blobs/{LAYER['digest']}", "/archive"]
    assert dict(registry.seen)["/archive"] == ""
    assert registry.seen[0][1] == ""


async def test_a_token_may_arrive_in_pieces(registry: Registry, tmp_path: Path) -> None:
    registry.scheme, registry.sends_pieces = "bearer", True
    chart = await puller(tmp_path).pull(registry.reference, Access(credentials=ANN))
    assert chart.name == "greeter"


@pytest.mark.parametrize(
    "header",
    [
        'Bearer realm="{}",service=registry,scope="repository:dns:pull"',
        'bearer  Realm = "{}" , Service = registry, scope="repository:dns:pull"',
        'Basic realm="x", Bearer realm="{}",service="registry",scope="repository:dns:pull"',
        'Negotiate, Bearer realm="{}",service="registry",scope="repository:dns:pull", Basic',
        'Bearer realm="{}",service="regi\\stry",scope="repository:dns:pull",realm="other"',
    ],
)
async def test_a_challenge_may_have_any_form_of_the_standard(
    registry: Registry, tmp_path: Path, header: str
) -> None:
    registry.scheme, registry.header = "bearer", header
    chart = await puller(tmp_path).pull(registry.reference, Access(credentials=ANN))
    assert chart.name == "greeter"


async def test_a_token_service_that_refuses_is_an_error_about_credentials(
    registry: Registry, tmp_path: Path
) -> None:
    registry.scheme = "bearer"

    stranger = Access(credentials=Credentials("bob", "x"))
    with pytest.raises(RegistryRefused, match="refuses the credentials"):
        await puller(tmp_path).pull(registry.reference, stranger)
    with pytest.raises(RegistryRefused, match="requires credentials"):
        await puller(tmp_path).pull(registry.reference)


async def test_a_token_of_the_pull_secret_is_sent_unchanged(
    registry: Registry, tmp_path: Path
) -> None:
    registry.scheme = "bearer"

    access = Access(credentials=Credentials(token="granted"))
    assert (await puller(tmp_path).pull(registry.reference, access)).name == "greeter"


async def test_content_that_does_not_match_its_digest_is_refused(
    registry: Registry, tmp_path: Path
) -> None:
    registry.archive = ARCHIVE + b" "
    with pytest.raises(WrongDigest, match=r"delivered sha256:[0-9a-f]{64} instead of sha256:"):
        await puller(tmp_path).pull(registry.reference)

    digest = "sha256:" + "0" * 64
    pinned = ChartReference(registry.host, "dns", digest=digest)
    with pytest.raises(WrongDigest, match=f"instead of {digest}: correct the digest"):
        await puller(tmp_path).pull(pinned)
    assert not (tmp_path / "cache" / ("0" * 64)).exists()


@pytest.mark.parametrize("status", [403, 429, 500])
async def test_the_error_about_another_response_has_its_status(
    registry: Registry, tmp_path: Path, status: int
) -> None:
    registry.status = status

    with pytest.raises(RegistryRefused, match=rf"refuses to give the manifest \({status}\)"):
        await puller(tmp_path).pull(registry.reference)


async def test_a_registry_that_takes_too_long_is_an_error(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        await never.wait()
        return web.Response()

    server = TestServer(_app(hang))
    async with server:
        reference = ChartReference(f"{server.host}:{server.port}", "dns", "1")
        limited = Puller(Blobs(tmp_path), Limits(pull_seconds=0.1))
        with pytest.raises(RegistryUnreachable, match=r"did not deliver it within 0\.1 s"):
            await limited.pull(reference)
