"""The memory of a shared dashboard under strangers: `python -m bench dashboard`.

1,000 ManagedResources fail. 1,000 pages of 60 users ask for all of them and never read, 3,000
random tokens are sent, and one user signs in meanwhile. The limit of the chart is 512Mi.
"""

import argparse
import asyncio
import os
import secrets
import socket
import ssl
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import aiohttp

from bench.processes import megabytes
from bench.tables import show
from pergola import sandbox
from pergola.api.kinds import NAMESPACE
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.manifests import cluster_role, group, manifest, rule, service_account
from pergola.testing.crds import install_crds
from tests.support.admission_site import write_pair
from tests.support.dashboard_objects import bad, create_managed_resource
from tests.support.ports import held_port
from tests.support.service_accounts import request_token

PEAK_TARGET: Final = 256.0
SIGN_IN_TARGET: Final = 2.0
_OWN: Final = "bench"
_PROBLEM: Final = "Deployment shop/web has 1 of 2 available replicas: 0/3 nodes are available. " * 3
_AT_ONCE: Final = 16
_RECEIVE_BUFFER: Final = 4096
_PATIENCE: Final = 120.0
_SIGN_IN: Final = """
import http.client, ssl, sys, time
context = ssl._create_unverified_context()
began, attempts, status = time.monotonic(), 0, 0
while status != 204 and time.monotonic() - began < 120:
    attempts += 1
    connection = http.client.HTTPSConnection(
        "localhost", int(sys.argv[1]), source_address=("127.0.0.2", 0), context=context
    )
    try:
        body = '{"token": "%s"}' % sys.argv[2]
        connection.request("POST", "/sign-in", body, {"Content-Type": "application/json"})
        status = connection.getresponse().status
    except OSError as error:
        status = 0
print(f"{time.monotonic() - began:.1f} s, attempts: {attempts}, status {status}")
"""


@dataclass
class Dashboard:
    """A dashboard that is a process.

    Attributes:
        readers: The connections of pages that never read.
    """

    pid: int
    port: int
    trusted: ssl.SSLContext
    readers: list[ssl.SSLSocket] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"https://localhost:{self.port}"

    def read_slowly(self, token: str) -> None:
        """Ask for the feed, and read nothing of it."""
        plain = socket.socket()
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        plain.settimeout(_PATIENCE)
        try:
            plain.connect(("127.0.0.1", self.port))
            reader = self.trusted.wrap_socket(plain, server_hostname="localhost")
            head = f"GET /api/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}"
            reader.sendall(f"{head}\r\n\r\n".encode())
        except OSError:  # there are too many connections
            plain.close()
        else:
            self.readers.append(reader)


def main() -> None:
    """Print the memory of the process, and how long a sign-in took."""
    parser = argparse.ArgumentParser(prog="python -m bench dashboard")
    parser.add_argument("--objects", type=int, default=1_000)
    parser.add_argument("--readers", type=int, default=1_000)
    parser.add_argument("--users", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=3_000)
    given = parser.parse_args()
    asyncio.run(_measure(given.objects, given.readers, given.users, given.tokens))


async def _measure(objects: int, readers: int, users: int, tokens: int) -> None:
    name = f"dashboard-{os.getpid()}"
    started = await sandbox.start(name, components=sandbox.API_ONLY, progress=lambda _: None)
    try:
        config = load(started.kubeconfig)
        async with Client.connect(config) as client:
            await _fill(client, objects)
            people = await _people(client, config, users)
        with TemporaryDirectory() as folder:
            async with _dashboard(started.kubeconfig, Path(folder)) as dashboard:
                await _attack(dashboard, people, readers, tokens)
    finally:
        await sandbox.stop(name)


async def _attack(dashboard: Dashboard, people: list[str], readers: int, tokens: int) -> None:
    before = megabytes(dashboard.pid, "VmRSS")
    for number in range(readers):
        token = people[number % len(people)]
        await asyncio.to_thread(dashboard.read_slowly, token)
    with_readers = megabytes(dashboard.pid, "VmHWM")
    connector = aiohttp.TCPConnector(ssl=dashboard.trusted, limit=tokens)
    async with aiohttp.ClientSession(connector=connector) as session:
        guesses = [
            asyncio.create_task(_sign_in(session, dashboard.url, secrets.token_urlsafe(40)))
            for _ in range(tokens)
        ]
        meanwhile = await _signed_in_elsewhere(dashboard.port, people[0])
        refused = Counter(await asyncio.gather(*guesses))
    show(
        [
            ("at rest", f"{before:.0f} MB", ""),
            (f"at most, with {readers:,} slow readers", f"{with_readers:.0f} MB", ""),
            (
                f"at most, with {tokens:,} random tokens besides",
                f"{megabytes(dashboard.pid, 'VmHWM'):.0f} MB",
                f"≤ {PEAK_TARGET:.0f} MB",
            ),
            (
                "a real sign-in from another address meanwhile",
                meanwhile,
                f"≤ {SIGN_IN_TARGET:.0f} s",
            ),
            ("answers to random tokens", _counts(refused), "none 204"),
            ("readers that were accepted", f"{len(dashboard.readers):,}", ""),
        ],
        ("figure", "measured", "target"),
    )
    for reader in dashboard.readers:
        reader.close()


async def _signed_in_elsewhere(port: int, token: str) -> str:
    """Return how long a sign-in took in a process of its own: this one is busy."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SIGN_IN, str(port), token, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode().strip() or "failed"


async def _sign_in(session: aiohttp.ClientSession, url: str, token: str) -> int:
    """Return the status of the answer; 0 if there is none."""
    with suppress(aiohttp.ClientError, OSError):
        async with session.post(f"{url}/sign-in", json={"token": token}) as answer:
            return answer.status
    return 0


def _counts(answers: Counter[int]) -> str:
    return ", ".join(f"{code or 'none'}: {count:,}" for code, count in sorted(answers.items()))


async def _fill(client: Client, objects: int) -> None:
    await install_crds(client)
    await client.create(manifest(NAMESPACE.api_version, NAMESPACE.kind, _OWN))
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> None:
        async with limit:
            await create_managed_resource(client, Key(_OWN, f"app-{number:04}"), bad(_PROBLEM))

    async with asyncio.TaskGroup() as creating:
        for number in range(objects):
            creating.create_task(one(number))


async def _people(client: Client, config: ClusterConfig, users: int) -> list[str]:
    """Return tokens of users who may list ManagedResources everywhere."""
    everyone = group(f"system:serviceaccounts:{_OWN}")
    reading = rule("resources.gardener.cloud", ["managedresources"], ["get", "list"])
    for obj in cluster_role("bench-readers", [reading], everyone):
        await client.create(obj)
    names = [f"reader-{number}" for number in range(users)]
    for name in names:
        await client.create(service_account(name, _OWN))
    return [await request_token(config, _OWN, name) for name in names]


@asynccontextmanager
async def _dashboard(kubeconfig: Path, folder: Path) -> AsyncGenerator[Dashboard]:
    trusted = ssl.create_default_context(cadata=write_pair(folder).decode())
    with held_port() as port, held_port() as health:
        options = {
            "host": "localhost",
            "cert-dir": folder,
            "kubeconfig": kubeconfig,
            "bind": "127.0.0.1",
            "port": port,
            "health-port": health,
            "metrics-port": 0,
        }
        process = await asyncio.create_subprocess_exec(
            Path(sys.executable).with_name("pergola"),
            "dashboard-server",
            *(f"--{name}={value}" for name, value in options.items()),
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await _until_ready(f"http://127.0.0.1:{health}/readyz")
            yield Dashboard(process.pid, port, trusted)
        finally:
            process.kill()
            await process.wait()


async def _until_ready(url: str) -> None:
    async with asyncio.timeout(_PATIENCE), aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)
