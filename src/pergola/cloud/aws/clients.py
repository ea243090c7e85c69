"""One pool of AWS clients for a process: a client for each Secret with credentials and region.

    async with clients.use(read, Place(secret, "eu-west-1"), clock.now()) as aws:
        ...

The Secret is read again for each use. A client is kept as long as its Secret does not change and
the keys that it obtained are valid, so that rotated keys are used by the next run.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.kinds import SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    resource_version_of,
    uid_of,
)
from pergola.cloud.aws.client import AwsClient, Observer, unobserved
from pergola.cloud.aws.credentials import Credentials, credentials_of, region_of
from pergola.cloud.aws.identity import assume, decoded, role_of
from pergola.cloud.aws.retry import Retry
from pergola.cloud.errors import CredentialsInvalid
from pergola.kube.client import Client
from pergola.kube.errors import NotFound

Read = Callable[[GroupVersionKind, Key], Awaitable[JsonObject | None]]
"""Reads a live object; None if it does not exist."""

DEFAULT_REGION: Final = "us-west-2"
"""The region for services that are the same in all regions, where none is named."""
_RENEW_BEFORE: Final = timedelta(minutes=10)
"""Keys that expire sooner are renewed before a run starts: a run may take as long."""
_MAX_IDLE: Final = 64
"""Idle clients in all; each has connections of its own."""


class Place(NamedTuple):
    """The key of a cached client.

    Attributes:
        secret: with the credentials; None for AWS's usual chain: the environment, a role by a token
            file (IRSA), the instance's role.
        region: empty for the one that the Secret names, else `DEFAULT_REGION`; for services that
            are the same in all regions.
    """

    secret: Key | None
    region: str = ""


@dataclass(slots=True)
class _Shared:
    """A client and the number of its users; the last user of a replaced one closes it."""

    aws: AwsClient
    version: str
    expires: datetime | None
    users: int = 0
    is_current: bool = True

    def is_valid(self, version: str, now: datetime) -> bool:
        is_fresh = self.expires is None or now < self.expires - _RENEW_BEFORE
        return self.version == version and is_fresh


class AwsClients:
    """Opens AWS clients on demand and keeps them.

    Args:
        endpoint_url: of all services, in place of AWS's own.
        retry: how often and when requests are repeated; the client's default if None.
        observe: called for every attempt of a request.
    """

    def __init__(
        self,
        *,
        endpoint_url: str = "",
        retry: Retry | None = None,
        observe: Observer = unobserved,
    ) -> None:
        self._endpoint_url = endpoint_url
        self._retry = retry
        self._observe = observe
        self._kept: dict[Place, _Shared] = {}

    @asynccontextmanager
    async def use(self, read: Read, place: Place, now: datetime) -> AsyncIterator[AwsClient]:
        """Lend the client with the current credentials.

        Args:
            read: reads objects of the cluster that holds the Secret.

        Raises:
            CredentialsInvalid: the Secret does not exist or is not usable, or AWS rejects its
                token.
            KubeError: the Secret cannot be read.
        """
        secret, version = await _read_secret(read, place.secret)
        shared = self._kept.get(place)
        if shared is None or not shared.is_valid(version, now):
            shared = await self._open(place, secret, version)
        before = self._kept.pop(place, None)
        self._kept[place] = shared  # ordered by last use
        shared.users += 1
        try:
            if before is not None and before is not shared:
                await self._retire(before)
            await self._close_idle()
            yield shared.aws
        finally:
            shared.users -= 1
            if not shared.is_current:
                await self._retire(shared)

    def observe(self, observer: Observer) -> None:
        """Call `observer` for every attempt of a request, for clients opened from now on."""
        self._observe = observer

    async def close(self) -> None:
        """Close all idle clients; their last users close the others."""
        while self._kept:
            await self._retire(self._kept.popitem()[1])

    async def _close_idle(self) -> None:
        """Close the idle clients that were used least recently, beyond the limit."""
        idle = [place for place, shared in self._kept.items() if not shared.users]
        for place in idle[: max(0, len(idle) - _MAX_IDLE)]:
            await self._retire(self._kept.pop(place))

    async def _retire(self, shared: _Shared) -> None:
        shared.is_current = False
        if not shared.users:
            await shared.aws.close()

    async def _open(self, place: Place, secret: JsonObject | None, version: str) -> _Shared:
        if secret is None or place.secret is None:
            return _Shared(self._client(place.region or DEFAULT_REGION, None), version, None)
        title = f"Secret {place.secret}"
        data = decoded(secret, title)
        role, region = role_of(data, title), place.region or region_of(data) or DEFAULT_REGION
        if role is None:
            return _Shared(self._client(region, credentials_of(data, title)), version, None)
        async with self._client(region, None) as anonymous:
            credentials, expires = await assume(anonymous, role, data, place.secret)
        return _Shared(self._client(region, credentials), version, expires)

    def _client(self, region: str, credentials: Credentials | None) -> AwsClient:
        return AwsClient(
            region,
            credentials=credentials,
            endpoint_url=self._endpoint_url,
            observe=self._observe,
            retry=self._retry,
        )


def reader(client: Client) -> Read:
    """Return a reader of the live objects of one cluster."""

    async def read(gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        try:
            return await client.get(gvk, key)
        except NotFound:
            return None

    return read


async def _read_secret(read: Read, key: Key | None) -> tuple[JsonObject | None, str]:
    """Read the Secret and what identifies its content; nothing without a Secret."""
    if key is None:
        return None, ""
    secret = await read(SECRET, key)
    if secret is None:
        raise CredentialsInvalid(
            f"Secret {key}, which should hold the AWS credentials, does not exist; create it"
        )
    return secret, f"{uid_of(secret)}/{resource_version_of(secret)}"
