"""A pool of AWS clients for a process: one client for each region and Secret with credentials.

Clients with the same keys share connections, and all clients of an account share its quota.

    async with clients.use(read, Place(secret, "eu-west-1"), clock.now()) as aws:
        ...

The Secret is read again for each use. A client is kept while its Secret is unchanged and its keys
are valid, so that rotated keys are used by the next run.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key
from pergola.cloud.aws.client import AwsClient, Observer, unobserved
from pergola.cloud.aws.credentials import credentials_of, region_of
from pergola.cloud.aws.identity import assume, decoded, role_of
from pergola.cloud.aws.metrics import AwsMetrics
from pergola.cloud.aws.quotas import Quotas, User
from pergola.cloud.aws.reading import Read, read_secret
from pergola.cloud.aws.retry import Retry
from pergola.cloud.aws.services import Identity, SharedServices
from pergola.runtime.metrics import Metrics

DEFAULT_REGION: Final = "us-west-2"
"""The region for services that are the same in all regions, if none is given."""
_RENEW_BEFORE: Final = timedelta(minutes=10)
"""Keys that expire sooner are renewed before a run starts, because the run may take that long."""
_MAX_IDLE: Final = 64
"""The maximum number of idle connections: identities times regions."""
_MAX_IDLE_CLIENTS: Final = 2000


class Place(NamedTuple):
    """The key of a cached client.

    Attributes:
        secret: contains the credentials; None for AWS's default chain: the environment, a role with
            a token file (IRSA), the instance's role.
        region: empty for the region in the Secret, else `DEFAULT_REGION`; for services that are the
            same in all regions.
    """

    secret: Key | None
    region: str = ""


@dataclass(slots=True)
class _Shared:
    """A client and the number of its users; the last user of a replaced client closes it."""

    aws: AwsClient
    identity: Identity
    version: str
    expires: datetime | None
    users: int = 0
    is_current: bool = True

    def is_valid(self, version: str, now: datetime) -> bool:
        is_fresh = self.expires is None or now < self.expires - _RENEW_BEFORE
        return self.version == version and is_fresh


class AwsClients:
    """Opens AWS clients on demand and caches them.

    Args:
        endpoint_url: for all services, instead of AWS's own.
        retry: how often and when requests are repeated; the client's default if None.
        observe: called for every attempt of a request.
        quotas: the rates of the process; None for rates of this pool alone.
    """

    def __init__(
        self,
        *,
        endpoint_url: str = "",
        retry: Retry | None = None,
        observe: Observer = unobserved,
        quotas: Quotas | None = None,
    ) -> None:
        self._endpoint_url = endpoint_url
        self._retry = retry
        self._observe = observe
        self._quotas = quotas or Quotas()
        self._kept: dict[Place, _Shared] = {}
        self._services = SharedServices(endpoint_url)

    @asynccontextmanager
    async def use(self, read: Read, place: Place, now: datetime) -> AsyncIterator[AwsClient]:
        """Lend the client with the current credentials.

        Args:
            read: reads objects of the cluster with the Secret.

        Raises:
            CredentialsInvalid: the Secret does not exist or is not usable, or AWS rejects its
                token.
            KubeError: the Secret cannot be read.
        """
        secret, version = await read_secret(read, place.secret)
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

    def measure(self, metrics: Metrics) -> None:
        """Count requests of clients opened from now on, which share the quotas of the process."""
        self._observe = metrics.register(AwsMetrics).request
        self._quotas = metrics.register(Quotas)

    async def close(self) -> None:
        """Close all idle clients; the others are closed by their last users."""
        while self._kept:
            await self._retire(self._kept.popitem()[1])

    async def _close_idle(self) -> None:
        """Close the least recently used idle clients beyond the limits."""
        idle = [place for place, shared in self._kept.items() if not shared.users]
        surplus = len(idle) - _MAX_IDLE_CLIENTS
        for number, place in enumerate(idle):
            if number >= surplus and len(self._services) <= _MAX_IDLE:
                return
            await self._retire(self._kept.pop(place))

    async def _retire(self, shared: _Shared) -> None:
        shared.is_current = False
        if shared.users:
            return
        await self._services.give_back(shared.identity)

    async def _open(self, place: Place, secret: JsonObject | None, version: str) -> _Shared:
        if secret is None or place.secret is None:
            return self._shared(place, version, (None, place.region or DEFAULT_REGION))
        title = f"Secret {place.secret}"
        data = decoded(secret, title)
        role, region = role_of(data, title), place.region or region_of(data) or DEFAULT_REGION
        if role is None:
            return self._shared(place, version, (credentials_of(data, title), region))
        anonymous = AwsClient(
            region,
            endpoint_url=self._endpoint_url,
            observe=self._observe,
            retry=self._retry,
            quotas=self._quotas,
            user=User(role, str(place.secret)),
        )
        async with anonymous:
            credentials, expires = await assume(anonymous, role, data, place.secret)
        return self._shared(place, version, (credentials, region), expires, role)

    def _shared(
        self,
        place: Place,
        version: str,
        identity: Identity,
        expires: datetime | None = None,
        role: str = "",
    ) -> _Shared:
        credentials, region = identity
        key_id = credentials.access_key_id if credentials else ""
        aws = AwsClient(
            region,
            services=self._services.lend(identity),
            observe=self._observe,
            retry=self._retry,
            quotas=self._quotas,
            user=User(role or key_id, str(place.secret or "")),
        )
        return _Shared(aws, identity, version, expires)
