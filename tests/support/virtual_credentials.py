"""Credentials of the virtual cluster of a Garden, and whether it accepts them."""

import asyncio
import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, labels_of
from pergola.garden.components.gardener_access import INTERNAL
from pergola.kube.client import Client
from pergola.kube.credentials import Certificate, Credentials
from pergola.kube.errors import KubeError, Unauthorized
from pergola.kube.kubeconfig import ClusterConfig, parse_cluster
from pergola.pki import Authority, Pair, Template
from tests.support.garden_world import MANAGED

_DAY: Final = timedelta(days=1)
_PAUSE: Final = 0.5


class LivingGarden(Protocol):
    """A Garden whose virtual cluster can be reached: a `Site`, or one on a real node."""

    @property
    def client(self) -> Client:
        """The administrator's client of the runtime cluster."""

    def reach(self, config: ClusterConfig, /) -> ClusterConfig:
        """Return how this machine reaches a Service of the runtime cluster."""


async def current_secrets(client: Client) -> dict[str, JsonObject]:
    """Return the newest Secret of each credential, by config name."""
    secrets = await client.list(SECRET, "garden", labels=MANAGED)
    newest: dict[str, JsonObject] = {}
    for secret in sorted(secrets, key=lambda it: int(labels_of(it).get("issued-at-time") or 0)):
        newest[labels_of(secret)["name"]] = secret
    return newest


async def client_certificate(client: Client) -> Credentials:
    """Return an administrator's certificate of the newest client authority."""
    authority = (await current_secrets(client))["ca-client"]
    data = {name: base64.b64decode(value) for name, value in authority["data"].items()}
    template = Template(
        common_name="someone", organizations=("system:masters",), lifetime=_DAY, for_client=True
    )
    pair = Authority(Pair(data["ca.crt"], data["ca.key"])).issue(template, datetime.now(UTC))
    return Certificate(pair.public, pair.private)


async def access_config(client: Client) -> ClusterConfig:
    """Return the access that Secret `garden/gardener-internal` gives, with its current token."""
    secret = await client.get(SECRET, Key("garden", INTERNAL))
    return parse_cluster(base64.b64decode(secret["data"]["kubeconfig"]), INTERNAL)


async def is_refused(garden: LivingGarden, credentials: Credentials) -> bool:
    """Connect anew, and return whether the virtual cluster refuses these credentials."""
    config = replace(await access_config(garden.client), credentials=credentials)
    async with Client.connect(garden.reach(config)) as virtual:
        try:
            await virtual.list(NAMESPACE)
        except Unauthorized:
            return True
    return False


@asynccontextmanager
async def never_refused(garden: LivingGarden, *kept: Credentials) -> AsyncGenerator[None]:
    """Check that clients which connect again and again are never refused while the block lasts.

    Args:
        kept: Those of each client; without any, one client uses what Secret
            `garden/gardener-internal` has at the time.
    """
    clients = [_Visitor(garden, each) for each in kept or (None,)]
    tasks = [asyncio.create_task(each.connect()) for each in clients]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends
    assert [each.refused for each in clients] == [0] * len(clients)
    assert all(each.accepted for each in clients)


class _Visitor:
    """A client that counts how often the virtual cluster accepted it, and how often not."""

    def __init__(self, garden: LivingGarden, credentials: Credentials | None) -> None:
        self._garden = garden
        self._credentials = credentials
        self.accepted = self.refused = 0

    async def connect(self) -> None:
        """Connect anew, again and again."""
        while True:
            try:
                config = await access_config(self._garden.client)
                config = replace(config, credentials=self._credentials or config.credentials)
                async with Client.connect(self._garden.reach(config)) as virtual:
                    await virtual.list(NAMESPACE)
                self.accepted += 1
            except Unauthorized:
                self.refused += 1
            except KubeError:
                pass  # the only replica of a server restarts
            await asyncio.sleep(_PAUSE)
