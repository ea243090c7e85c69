"""Snapshots of etcd, requested from a server that requires a client certificate."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from pergola.garden.components import authorities
from pergola.garden.components.etcds import access
from pergola.garden.landscape import Landscape
from pergola.kube.kubeconfig import ClusterConfig
from pergola.operator.run.snapshot import SnapshotFailed, server_of, take
from pergola.operator.virtual_cluster import Reach
from pergola.pki import Authority, Template
from pergola.secrets_manager import Generated, ManagedSecret
from tests.support.documented.symptoms import symptom
from tests.support.garden import landscape

HOST = "virtual-garden-etcd-main-client.garden"
NOW = datetime.now(UTC)
DAY = timedelta(days=1)


class BackupRestore:
    """A stand-in for etcd-backup-restore that records who requests what.

    Attributes:
        requests: the user, and the path with its query, of each request.
    """

    def __init__(self, authority: Authority, directory: Path) -> None:
        self.status = 200
        self.requests: list[tuple[str, str]] = []
        template = Template(common_name=HOST, hosts=(HOST,), lifetime=DAY, for_server=True)
        pair = authority.issue(template, NOW)
        files = {"crt": pair.public, "key": pair.private, "ca": authority.pair.public}
        for name, content in files.items():
            (directory / name).write_bytes(content)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(directory / "crt", directory / "key")
        self._context.load_verify_locations(directory / "ca")
        self._context.verify_mode = ssl.CERT_REQUIRED

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[int]:
        """Serve on a port of this machine."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=self._context)
        await site.start()
        try:
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        certificate = request.transport.get_extra_info("peercert")
        user = dict(part[0] for part in certificate["subject"])["commonName"]
        self.requests.append((user, request.path_qs))
        return web.Response(status=self.status, text="no space")


@pytest.fixture
def authority() -> Authority:
    return Authority.create("ca-etcd", NOW, DAY)


def of(authority: Authority) -> Landscape:
    """Return a landscape whose client certificate an authority has signed."""
    template = Template(common_name=access.CLIENT, lifetime=DAY, for_client=True)
    pair = authority.issue(template, NOW)
    client = ManagedSecret({}, {"tls.crt": pair.public, "tls.key": pair.private})
    bundle = ManagedSecret({}, {"bundle.crt": authority.pair.public})
    found = landscape()
    generated = {
        **found.credentials.generated,
        access.CLIENT: Generated(client),
        authorities.ETCD: Generated(bundle, bundle=bundle),
    }
    return found.with_credentials(replace(found.credentials, generated=generated))


def to(port: int) -> Reach:
    """Return a function that leads to a port of this machine."""

    def reach(config: ClusterConfig) -> ClusterConfig:
        return replace(config, server=f"https://127.0.0.1:{port}", tls_server_name=HOST)

    return reach


async def test_a_snapshot_is_requested_with_the_client_certificate(
    authority: Authority, tmp_path: Path
) -> None:
    server = BackupRestore(authority, tmp_path)
    async with server.serving() as port:
        await take(of(authority), to(port))
    assert server.requests == [("etcd-client", "/snapshot/full?final=true")]


async def test_an_answer_other_than_success_is_an_error(
    authority: Authority, tmp_path: Path
) -> None:
    server = BackupRestore(authority, tmp_path)
    server.status = 500
    async with server.serving() as port:
        with pytest.raises(SnapshotFailed, match=symptom("The etcd cannot be backed up")) as seen:
            await take(of(authority), to(port))
        assert re.search(r"https://127.*500: no space", str(seen.value))


async def test_a_server_that_does_not_answer_is_an_error(authority: Authority) -> None:
    listener = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    with pytest.raises(SnapshotFailed, match="initiating ETCD snapshot"):
        await take(of(authority), to(port))


def test_the_request_goes_to_the_main_etcd(authority: Authority) -> None:
    assert server_of(of(authority)).server == f"https://{HOST}:8080"
