"""Clients of AWS, one for each region; replaced when the credentials change."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pergola.api.kinds import SECRET
from pergola.api.objects import Key, map_at, resource_version_of
from pergola.cloud.aws import AwsClient, Credentials, Observer, Retry, credentials_of
from pergola.cloud.errors import CredentialsInvalid
from pergola.kube.client import Client
from pergola.kube.errors import NotFound


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """How AWS is asked.

    Attributes:
        credentials: a Secret with keys of an identity; else AWS's usual chain decides: the
            environment, a role by a token file (IRSA), the instance's role.
        endpoint_url: where all services are, instead of at AWS.
        retry: how often and when; the client's own way if None.
    """

    credentials: Key | None = None
    endpoint_url: str = ""
    retry: Retry | None = None


@dataclass(slots=True)
class _Shared:
    """A client and how many use it; closed by the last one after it was replaced."""

    aws: AwsClient
    version: str
    users: int = 0
    is_current: bool = True


class AwsClients:
    """Opens clients where they are needed, and keeps them."""

    def __init__(self, client: Client, settings: AwsSettings, observe: Observer) -> None:
        self._client = client
        self._settings = settings
        self._observe = observe
        self._by_region: dict[str, _Shared] = {}

    @asynccontextmanager
    async def use(self, region: str) -> AsyncIterator[AwsClient]:
        """The client for a region, with the credentials of now.

        Raises:
            CredentialsInvalid: the Secret is not there, or says nothing usable.
        """
        version, credentials = await self._credentials()
        shared = before = self._by_region.get(region)
        if shared is None or shared.version != version:
            shared = self._by_region[region] = _Shared(self._open(region, credentials), version)
        shared.users += 1
        try:
            if before is not None and before is not shared:
                await self._retire(before)
            yield shared.aws
        finally:
            shared.users -= 1
            if not shared.is_current:
                await self._retire(shared)

    async def close(self) -> None:
        """Closes all that nobody uses."""
        while self._by_region:
            await self._retire(self._by_region.popitem()[1])

    async def _retire(self, shared: _Shared) -> None:
        shared.is_current = False
        if not shared.users:
            await shared.aws.close()

    def _open(self, region: str, credentials: Credentials | None) -> AwsClient:
        return AwsClient(
            region,
            credentials=credentials,
            endpoint_url=self._settings.endpoint_url,
            observe=self._observe,
            retry=self._settings.retry,
        )

    async def _credentials(self) -> tuple[str, Credentials | None]:
        """The keys, and the version of the Secret in which they are."""
        key = self._settings.credentials
        if key is None:
            return "", None
        of = f"Secret {key}"
        try:
            found = await self._client.get(SECRET, key)
        except NotFound:
            raise CredentialsInvalid(
                f"{of}, which should hold the AWS credentials, does not exist; create it"
            ) from None
        data = {key: base64.b64decode(value) for key, value in map_at(found, "data").items()}
        return resource_version_of(found), credentials_of(data, of)
