"""AWS identities in Secrets: keys, or a role with a workload identity token."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pergola.api.objects import JsonObject, Key, map_at
from pergola.cloud.aws.client import AwsClient
from pergola.cloud.aws.credentials import Credentials
from pergola.cloud.errors import CredentialsInvalid
from pergola.kube.yaml import YamlError, parse

KEY_ID: Final = "accessKeyID"
"""Part of the keys of an identity, which come before its role."""
ROLE: Final = "roleARN"
TOKEN: Final = "token"  # noqa: S105 - the key of a Secret
CONFIG: Final = "config"
"""A `WorkloadIdentityConfig`, which may also contain the role."""
_LONGEST_SESSION: Final = 64


def decoded(secret: JsonObject, title: str) -> dict[str, bytes]:
    """Return the data of a Secret.

    Raises:
        CredentialsInvalid: it is not valid base64.
    """
    try:
        return {key: b64decode(value) for key, value in map_at(secret, "data").items()}
    except (NotBase64, TypeError, ValueError):
        raise CredentialsInvalid(f"{title}: its data is not valid base64") from None


def role_of(data: Mapping[str, bytes], title: str) -> str | None:
    """Return the role of a workload identity, or None if the Secret contains keys instead.

    Raises:
        CredentialsInvalid: the role or the token is missing.
    """
    if _text(data.get(KEY_ID)) or not {TOKEN, ROLE, CONFIG} & data.keys():
        return None
    if not data.get(TOKEN):
        raise CredentialsInvalid(
            f"{title} has a workload identity's role but no {TOKEN}; let the controller that "
            "renews tokens write it there"
        )
    role = _text(data.get(ROLE)) or _role_in(data.get(CONFIG))
    if not role:
        raise CredentialsInvalid(
            f"{title} has a workload identity's {TOKEN} but no {ROLE}; add the ARN of the role"
        )
    return role


async def assume(
    aws: AwsClient, role: str, data: Mapping[str, bytes], secret: Key
) -> tuple[Credentials, datetime | None]:
    """Exchange the token in a Secret for keys of a role; return them with their expiry.

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


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace").strip()


def _role_in(config: bytes | None) -> str:
    try:
        found = parse(config) if config else None
    except YamlError:
        return ""
    role = found.get(ROLE) if isinstance(found, dict) else None
    return role if isinstance(role, str) else ""
