"""As whom AWS is asked: an Infrastructure's Secret, read anew for each run (spec 30 §2 item 6).

A Secret has keys of an identity, or a role and a token for it (workload identity). A client is kept
as long as its Secret stays as it is and what it got with it is valid; who rotates keys has them
used by the next run.
"""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.kinds import SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    map_at,
    resource_version_of,
    uid_of,
)
from pergola.cloud.aws import AwsClient, Credentials, Observer, Retry, credentials_of, unobserved
from pergola.cloud.errors import CredentialsInvalid
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.yaml import YamlError, parse

Read = Callable[[GroupVersionKind, Key], Awaitable[JsonObject | None]]
"""An object as it is; None if it is not there."""

ROLE: Final = "roleARN"
TOKEN: Final = "token"  # noqa: S105 - the key of a Secret
CONFIG: Final = "config"
"""A `WorkloadIdentityConfig`, which may say the role as well."""

_EARLIER: Final = timedelta(minutes=10)
"""Keys that are valid for less are not begun with: a run may take as long."""
_LONGEST_SESSION: Final = 64
_KEPT: Final = 64
"""Clients that nobody uses, in all; each has connections of its own."""


class Place(NamedTuple):
    """Which client: whose Secret, and where."""

    secret: Key
    region: str


@dataclass(slots=True)
class _Shared:
    """A client and how many use it; closed by the last one after it was replaced."""

    aws: AwsClient
    version: str
    expires: datetime | None
    users: int = 0
    is_current: bool = True

    def is_valid(self, version: str, now: datetime) -> bool:
        return self.version == version and (self.expires is None or now < self.expires - _EARLIER)


class AwsClients:
    """Opens clients of AWS where they are needed, and keeps them.

    Args:
        endpoint_url: where all services are, instead of at AWS.
        retry: how often and when requests are repeated; the client's own way if None.
    """

    def __init__(self, *, endpoint_url: str = "", retry: Retry | None = None) -> None:
        self._endpoint_url = endpoint_url
        self._retry = retry
        self._observe: Observer = unobserved
        self._kept: dict[Place, _Shared] = {}

    @asynccontextmanager
    async def use(self, read: Read, place: Place, now: datetime) -> AsyncIterator[AwsClient]:
        """The client with the credentials of now.

        Args:
            read: an object of the seed, where the Secret is.

        Raises:
            CredentialsInvalid: the Secret is not there, says nothing usable, or AWS does not take
                its token.
            KubeError: the Secret cannot be read.
        """
        secret = await _found(read, place.secret)
        version = f"{uid_of(secret)}/{resource_version_of(secret)}"
        shared = self._kept.get(place)
        if shared is None or not shared.is_valid(version, now):
            shared = await self._open(place, secret, version)
        before = self._kept.pop(place, None)
        self._kept[place] = shared  # the last one used is the last one
        shared.users += 1
        try:
            if before is not None and before is not shared:
                await self._retire(before)
            await self._spare()
            yield shared.aws
        finally:
            shared.users -= 1
            if not shared.is_current:
                await self._retire(shared)

    def observe(self, observer: Observer) -> None:
        """Tells of every attempt of a request, of all clients that are opened from now on."""
        self._observe = observer

    async def close(self) -> None:
        """Closes all that nobody uses."""
        while self._kept:
            await self._retire(self._kept.popitem()[1])

    async def _spare(self) -> None:
        """Closes the clients that have not been used for longest, if there are too many."""
        idle = [place for place, shared in self._kept.items() if not shared.users]
        for place in idle[: max(0, len(idle) - _KEPT)]:
            await self._retire(self._kept.pop(place))

    async def _retire(self, shared: _Shared) -> None:
        shared.is_current = False
        if not shared.users:
            await shared.aws.close()

    async def _open(self, place: Place, secret: JsonObject, version: str) -> _Shared:
        of = f"Secret {place.secret}"
        data = decoded(secret, of)
        role = role_of(data, of)
        if role is None:
            return _Shared(self._client(place.region, credentials_of(data, of)), version, None)
        async with self._client(place.region, None) as anybody:
            credentials, expires = await assume(anybody, role, data, place.secret)
        return _Shared(self._client(place.region, credentials), version, expires)

    def _client(self, region: str, credentials: Credentials | None) -> AwsClient:
        return AwsClient(
            region,
            credentials=credentials,
            endpoint_url=self._endpoint_url,
            observe=self._observe,
            retry=self._retry,
        )


def reader(client: Client) -> Read:
    """Reads with a client."""

    async def read(gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        try:
            return await client.get(gvk, key)
        except NotFound:
            return None

    return read


def decoded(secret: JsonObject, of: str) -> dict[str, bytes]:
    """The data of a Secret.

    Raises:
        CredentialsInvalid: it is no base64.
    """
    try:
        return {key: b64decode(value) for key, value in map_at(secret, "data").items()}
    except (NotBase64, TypeError, ValueError):
        raise CredentialsInvalid(f"{of}: its data is no base64") from None


def role_of(data: Mapping[str, bytes], of: str) -> str | None:
    """The role that a workload identity may take; None if the Secret has keys instead.

    Raises:
        CredentialsInvalid: there is a token, but nobody says for which role.
    """
    if TOKEN not in data and ROLE not in data and CONFIG not in data:
        return None
    if not data.get(TOKEN):
        raise CredentialsInvalid(
            f"{of} has a workload identity's role but no {TOKEN}; whoever renews its token has to "
            "put it there"
        )
    role = _text(data.get(ROLE)) or _role_in(data.get(CONFIG))
    if not role:
        raise CredentialsInvalid(
            f"{of} has a workload identity's {TOKEN} but no {ROLE}; add the ARN of the role"
        )
    return role


async def assume(
    aws: AwsClient, role: str, data: Mapping[str, bytes], secret: Key
) -> tuple[Credentials, datetime | None]:
    """Keys for a role, by a token that says who asks; and until when they are valid.

    Raises:
        CloudError: AWS refused.
    """
    answer = await aws.call(
        "sts",
        "AssumeRoleWithWebIdentity",
        RoleArn=role,
        RoleSessionName=f"{secret.namespace}.{secret.name}"[:_LONGEST_SESSION],
        WebIdentityToken=_text(data.get(TOKEN)),
    )
    keys: JsonObject = answer["Credentials"]
    expires = keys.get("Expiration")
    return Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"]), (
        expires if isinstance(expires, datetime) else None
    )


async def _found(read: Read, key: Key) -> JsonObject:
    secret = await read(SECRET, key)
    if secret is None:
        raise CredentialsInvalid(
            f"Secret {key}, which should hold the AWS credentials, does not exist; create it"
        )
    return secret


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace").strip()


def _role_in(config: bytes | None) -> str:
    try:
        found = parse(config) if config else None
    except YamlError:
        return ""
    role = found.get(ROLE) if isinstance(found, dict) else None
    return role if isinstance(role, str) else ""
