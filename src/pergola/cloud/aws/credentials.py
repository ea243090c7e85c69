"""The keys of an AWS identity.

Without them, AWS's default credential chain applies: the environment, a token file with a role
(IRSA, workload identity), the shared files, and the role of the container or instance.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pergola.cloud.errors import CredentialsInvalid

# Gardener's names, those of Cluster API's static identities, and those of the environment.
_REGIONS: Final = ("region", "Region", "AWS_REGION")
_NAMES: Final = (
    ("accessKeyID", "secretAccessKey", "sessionToken"),
    ("AccessKeyID", "SecretAccessKey", "SessionToken"),
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The keys of an identity; its repr omits the secret ones."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def credentials_of(data: Mapping[str, bytes], of: str) -> Credentials:
    """Return the keys in the decoded data of a Secret.

    Args:
        of: the title of the Secret, such as `Secret garden/aws`.

    Raises:
        CredentialsInvalid: they are missing or incomplete; the text contains no values.
    """
    for key_id, secret, token in _NAMES:
        if key_id in data or secret in data:
            return Credentials(
                _text(data, key_id, of),
                _text(data, secret, of),
                _text(data, token, of) if token in data else None,
            )
    raise CredentialsInvalid(
        f"{of} has no keys {_NAMES[0][0]} and {_NAMES[0][1]}, which hold AWS credentials"
    )


def region_of(data: Mapping[str, bytes]) -> str:
    """Return the region in the decoded data of a Secret; empty if it has none."""
    found = (data.get(name, b"").decode(errors="replace").strip() for name in _REGIONS)
    return next(filter(None, found), "")


def _text(data: Mapping[str, bytes], key: str, of: str) -> str:
    """Return a value without the trailing newline that editors add."""
    try:
        text = data.get(key, b"").decode("ascii").strip()
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise CredentialsInvalid(f"{of}: key {key} is missing, empty, or not text")
    return text
