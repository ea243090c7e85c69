"""Reading the Secrets with credentials."""

from collections.abc import Awaitable, Callable

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, resource_version_of, uid_of
from pergola.cloud.errors import CredentialsInvalid
from pergola.kube.client import Client
from pergola.kube.errors import NotFound

Read = Callable[[GroupVersionKind, Key], Awaitable[JsonObject | None]]
"""Reads a live object; None if it does not exist."""


def reader(client: Client) -> Read:
    """Return a reader of the live objects of one cluster."""

    async def read(gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        try:
            return await client.get(gvk, key)
        except NotFound:
            return None

    return read


async def read_secret(read: Read, key: Key | None) -> tuple[JsonObject | None, str]:
    """Read the Secret, and an identifier of its content, which is empty without a Secret."""
    if key is None:
        return None, ""
    secret = await read(SECRET, key)
    if secret is None:
        raise CredentialsInvalid(
            f"Secret {key}, which should hold the AWS credentials, does not exist; create it"
        )
    return secret, f"{uid_of(secret)}/{resource_version_of(secret)}"
