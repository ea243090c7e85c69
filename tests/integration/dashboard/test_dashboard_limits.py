"""What peers may use of a dashboard, and what it tells about them."""

import asyncio
import logging
import os
import ssl
from contextlib import suppress
from typing import Final

import aiohttp
import pytest

from pergola.api.objects import Key
from pergola.dashboard.server.app import MOST_STREAMS
from pergola.dashboard.server.connections import LIMITS
from pergola.kube.client import Client
from pergola.testing.waiting import PATIENCE
from tests.support.dashboard_cluster import ClusterSite
from tests.support.dashboard_objects import create_managed_resource, good
from tests.support.dashboard_site import DashboardSite

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

NOBODY: Final = 65534
SECRET: Final = "eyJhbGciOi.secret"
RESOURCES: Final = {
    "apiGroups": ["resources.gardener.cloud"],
    "resources": ["managedresources"],
    "verbs": ["get", "list"],
}


def address(site: DashboardSite) -> tuple[str, int]:
    host, _, port = site.url.partition("//")[2].partition(":")
    return host, int(port)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: 127"], ids=["nothing", "a-part"])
async def test_peers_without_a_whole_request_are_disconnected(
    locked: DashboardSite, said: bytes
) -> None:
    reader, writer = await asyncio.open_connection(*address(locked))
    writer.write(said)
    async with asyncio.timeout(PATIENCE):
        with suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize(
    "header",
    [
        f"Authorization : Bearer {SECRET}",
        f"Authorization: Bearer {SECRET}\0",
        f"Cookie: pergola-dashboard={SECRET}\0",
    ],
    ids=["space", "nul", "cookie"],
)
async def test_a_malformed_request_brings_its_token_into_neither_log_nor_answer(
    locked: DashboardSite, caplog: pytest.LogCaptureFixture, header: str
) -> None:
    caplog.set_level(logging.DEBUG)
    reader, writer = await asyncio.open_connection(*address(locked))
    writer.write(f"GET / HTTP/1.1\r\n{header}\r\n\r\n".encode())
    answer = b""
    with suppress(ConnectionError):
        answer = await reader.read()
    writer.close()
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert SECRET.encode() not in answer
    assert SECRET not in caplog.text


async def test_a_person_has_a_limited_number_of_open_pages(site: DashboardSite) -> None:
    forever = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        cookie_jar=site.session.cookie_jar, connector=aiohttp.TCPConnector(limit=0)
    ) as browser:
        answers = [
            await browser.get(f"{site.url}/api/stream", timeout=forever)
            for _ in range(MOST_STREAMS + 1)
        ]
        assert [it.status for it in answers] == [200] * MOST_STREAMS + [429]
        assert "close one" in await answers[-1].text()
        for answer in answers:
            answer.close()


async def test_one_address_cannot_take_all_connections_before_their_handshake(
    shared: ClusterSite,
) -> None:
    port = int(shared.url.rpartition(":")[2])
    most = LIMITS.connections_per_peer
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(most + 1)]
    first, last = opened[0][0], opened[-1][0]
    async with asyncio.timeout(PATIENCE):
        with suppress(ConnectionError):
            assert await first.read() == b""  # makes room for the last one
    assert not last.at_eof()
    # Another address gets in.
    context = ssl.create_default_context(cadata=shared.authority.decode())
    _, other = await asyncio.open_connection(
        "localhost", port, ssl=context, local_addr=("127.0.0.2", 0)
    )
    for _, writer in [*opened, (None, other)]:
        writer.transport.abort()


async def test_open_pages_leave_connections_for_others(
    site: DashboardSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pergola.dashboard.server.app.MOST_STREAMS_TOGETHER", 1)
    async with site.stream() as messages:
        await anext(messages)
        status, text = await site.get("/api/stream")
        assert (status, text) == (503, "1 pages are open: try again later\n")
        assert (await site.get("/api/cluster"))[0] == 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
async def test_another_user_of_the_machine_can_use_neither_a_link_nor_a_session(
    site: DashboardSite,
) -> None:
    [cookie] = [f"{it.key}={it.value}" for it in site.session.cookie_jar]
    stolen = {"Cookie": cookie}
    assert (await site.get("/api/cluster"))[0] == 200
    assert await status_for_another_user(site, "/api/cluster", stolen) == 401
    link = site.links[-1].removeprefix(site.url)
    assert await status_for_another_user(site, link, {}) == 403
    assert site.links[-1].endswith(link)  # it still works for its user


async def status_for_another_user(site: DashboardSite, path: str, headers: dict[str, str]) -> int:
    """Return the status of an answer to a process of the user `nobody`."""
    host, port = address(site)
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    request = "\r\n".join([*lines, "", ""])
    script = f'exec 3<>/dev/tcp/{host}/{port}; printf %s "$0" >&3; read -r line <&3; echo "$line"'
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", script, request, stdout=asyncio.subprocess.PIPE, user=NOBODY
    )
    said, _ = await process.communicate()
    return int(said.split()[1])


async def test_a_long_body_is_refused(shared: ClusterSite) -> None:
    async with shared.browser() as browser:
        body = {"token": "a" * 40_000}
        async with browser.session.post(f"{shared.url}/sign-in", json=body) as answer:
            assert answer.status == 413


async def test_changes_elsewhere_send_nothing_to_those_who_may_not_see_them(
    shared: ClusterSite, namespace: str, other_namespace: str, cluster_client: Client
) -> None:
    token = await shared.person("ann")
    await shared.grant("ann", namespace, RESOURCES)
    async with shared.signed_in(token) as browser, browser.stream() as messages:
        await anext(messages)
        for number in range(3):
            await create_managed_resource(
                cluster_client, Key(other_namespace, f"hidden-{number}"), good()
            )
        await create_managed_resource(cluster_client, Key(namespace, "shown"), good())
        names: list[str] = []
        async for message in messages:
            assert message.id == ""
            if message.name != "changes":
                continue
            assert message.data["items"] or message.data["gone"]
            names += [item["name"] for item in message.data["items"]]
            if "shown" in names:
                break
        assert set(names) == {"shown"}
