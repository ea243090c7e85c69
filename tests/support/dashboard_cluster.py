"""The dashboard for several people: over TLS, with only the permissions of its chart."""

import asyncio
import secrets
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import aiohttp

from pergola.admission.certificates import Certificates
from pergola.api.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from pergola.api.objects import JsonObject, Key
from pergola.dashboard import (
    Answers,
    Board,
    ClusterDoor,
    Lifetimes,
    Server,
    Visitors,
    serve_dashboard,
)
from pergola.dashboard.access.local import LOOPBACK
from pergola.dashboard.access.visitors import connecting
from pergola.dashboard.server.tls import reloading
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.transport import Observer, unobserved
from pergola.manifests.rbac import account, cluster_role, role, service_account
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.listening import listen
from pergola.runtime.task_group import TaskGroup
from pergola.sandbox.helm import render
from pergola.sandbox.images.pergola import PergolaImage
from pergola.shipped import CHARTS
from tests.support.admission_site import write_pair
from tests.support.dashboard_site import DashboardSite
from tests.support.service_accounts import request_token

HOST: Final = "localhost"
_SHORT: Final = Lifetimes(token=0, allowed=1, denied=1, failed=1)
_BEAT: Final = 1.0
_PERMISSIONS: Final = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")


@dataclass
class ClusterSite:
    """A dashboard in a cluster, and the people who may use it.

    Attributes:
        namespace: Of the dashboard, and of the ServiceAccounts of people.
        certificates: In `folder`.
    """

    url: str
    admin: Client
    config: ClusterConfig
    namespace: str
    board: Board
    certificates: Certificates
    folder: Path
    authority: bytes

    async def person(self, name: str) -> str:
        """Create a ServiceAccount without rights; return a token of it."""
        await self.admin.create(service_account(name, self.namespace))
        return await request_token(self.config, self.namespace, name)

    async def grant(self, name: str, namespace: str, *rules: JsonObject) -> list[JsonObject]:
        """Give a person rights in a namespace; in the whole cluster if it is empty."""
        subject = account(name, self.namespace)
        own = f"{self.namespace}-{name}-{secrets.token_hex(3)}"
        found = role(own, namespace, rules, subject) if namespace else ()
        objects = list(found or cluster_role(own, rules, subject))
        for obj in objects:
            await self.admin.create(obj)
        return objects

    def client(self, token: str) -> Client:
        """Return a client with a person's token, as for `kubectl`."""
        return Client.connect(replace(self.config, credentials=StaticToken(token)))

    @asynccontextmanager
    async def browser(self, headers: dict[str, str] | None = None) -> AsyncGenerator[DashboardSite]:
        """Yield a browser, which is not signed in."""
        context = ssl.create_default_context(cadata=self.authority.decode())
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context), headers=headers
        ) as session:
            yield DashboardSite(self.url, session, self.board)

    @asynccontextmanager
    async def signed_in(self, token: str) -> AsyncGenerator[DashboardSite]:
        """Yield the browser of a person who has signed in."""
        async with self.browser() as browser:
            assert await sign_in(browser, token) == (204, "")
            yield browser


async def sign_in(browser: DashboardSite, token: str, **headers: str) -> tuple[int, str]:
    """Send a token as the page does; return the status and the text of the answer."""
    url = f"{browser.url}/sign-in"
    async with browser.session.post(url, json={"token": token}, headers=headers) as answer:
        return answer.status, await answer.text()


@asynccontextmanager
async def cluster_site(
    admin: Client,
    config: ClusterConfig,
    namespace: str,
    folder: Path,
    answers: Answers,
    *,
    path: ClusterConfig | None = None,
    lifetimes: Lifetimes = _SHORT,
    observe: Observer = unobserved,
) -> AsyncGenerator[ClusterSite]:
    """Yield a dashboard that soon asks the API server again, unless told otherwise.

    Args:
        config: Of the administrator.
        path: By which the dashboard reaches the API server, if that is another one.
        observe: Sees the requests of the dashboard itself.
    """
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_rights(admin, namespace))
        token = await request_token(config, namespace, "pergola-dashboard")
        own = replace(path or config, credentials=StaticToken(token))
        client = await stack.enter_async_context(Client.connect(own, observe=observe))
        visitors = Visitors(client, connecting(own), lifetimes)
        stack.push_async_callback(visitors.close)
        authority = write_pair(folder)
        certificates = Certificates(folder, Metrics().certificates())
        listener = listen(LOOPBACK, 0, "the dashboard")
        board = Board(client)
        server = Server(
            board=board,
            door=ClusterDoor(visitors, {HOST}),
            answers=answers,
            cluster="test",
            beat_seconds=_BEAT,
        )
        url = f"https://{HOST}:{listener.getsockname()[1]}"
        group = await stack.enter_async_context(TaskGroup())
        await stack.enter_async_context(serve_dashboard(server, listener, reloading(certificates)))
        watching = group.create_task(board.unit().run())
        stack.callback(watching.cancel)
        yield ClusterSite(url, admin, config, namespace, board, certificates, folder, authority)


@asynccontextmanager
async def _rights(admin: Client, namespace: str) -> AsyncGenerator[None]:
    """Create the ServiceAccount of the chart with its permissions, while the block lasts."""
    values = {"image": {"repository": PergolaImage.repository}}
    objects = await asyncio.to_thread(render, CHARTS / "dashboard", values, namespace=namespace)
    for obj in objects:
        if obj["kind"] in _PERMISSIONS:
            await admin.create(obj)
    try:
        yield
    finally:
        await _forget(admin, namespace)


async def _forget(admin: Client, namespace: str) -> None:
    """Delete the permissions in the whole cluster that a test with this namespace has given."""
    for kind in (CLUSTER_ROLE_BINDING, CLUSTER_ROLE):
        for obj in await admin.list(kind, metadata_only=True):
            name = str(obj["metadata"]["name"])
            if namespace in name:
                await admin.delete(kind, Key("", name))
