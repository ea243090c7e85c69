"""Managed Secrets, and the meaning of their labels (spec 20 §10.1)."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pergola.api.objects import JsonObject, Key, labels_of, map_at, metadata_of, uid_of
from pergola.secrets_manager.configs import SecretData
from pergola.secrets_manager.errors import SecretsManagerError

MANAGER: Final = "secrets-manager"
TLS: Final = "kubernetes.io/tls"
OPAQUE: Final = "Opaque"

NAME: Final = "name"
MANAGED_BY: Final = "managed-by"
IDENTITY: Final = "manager-identity"
CONFIG_CHECKSUM: Final = "checksum-of-config"
CA_CHECKSUM: Final = "checksum-of-signing-ca"
BUNDLE_FOR: Final = "bundle-for"
PERSIST: Final = "persist"
INITIATED: Final = "last-rotation-initiation-time"
ISSUED_AT: Final = "issued-at-time"
VALID_UNTIL: Final = "valid-until-time"
RENEW_AT: Final = "renew-after-validity-percentage"
USE_DATA_FOR: Final = "secrets-manager-use-data-for-name"
ADOPTED_FOR: Final = "adopted-for-checksum-of-config"
"""Of Secrets of another implementation that we use: our checksum of the config."""

OURS: Final = "v1."
"""The prefix of our checksums; those of other implementations are plain numbers or hex."""


@dataclass(frozen=True, slots=True)
class ManagedSecret:
    """A Secret of one config.

    Attributes:
        obj: As returned by the API server.
        data: Decoded.
    """

    obj: JsonObject
    data: SecretData

    @classmethod
    def of(cls, obj: JsonObject) -> "ManagedSecret":
        """Decode a Secret.

        Raises:
            SecretsManagerError: A value is not base64.
        """
        return cls(obj, decoded(obj))

    @property
    def object_name(self) -> str:
        """The object's name, for workloads that mount it."""
        return Key.of(self.obj).name

    @property
    def name(self) -> str:
        """The config name."""
        return self.labels.get(NAME, "")

    @property
    def labels(self) -> dict[str, str]:
        """All labels."""
        return labels_of(self.obj)

    @property
    def uid(self) -> str:
        """The object's uid."""
        return uid_of(self.obj)

    @property
    def initiated(self) -> str:
        """The start of the rotation it belongs to, in Unix seconds, or empty."""
        return self.labels.get(INITIATED, "")

    @property
    def created(self) -> datetime:
        """The creation time of the object, to the second."""
        text = metadata_of(self.obj).get("creationTimestamp")
        if not isinstance(text, str):
            return datetime.min.replace(tzinfo=UTC)
        return datetime.fromisoformat(text)

    @property
    def age_rank(self) -> tuple[datetime, int]:
        """The sort key for Secrets of one name, oldest first."""
        return self.created, unix(self.labels.get(INITIATED)) or 0

    @property
    def issued_at(self) -> datetime | None:
        """The time when its data was generated."""
        return moment(self.labels.get(ISSUED_AT))

    @property
    def valid_until(self) -> datetime | None:
        """The expiry time of its data; None if it never expires."""
        return moment(self.labels.get(VALID_UNTIL))

    @property
    def is_foreign(self) -> bool:
        """Whether another implementation of the secrets manager generated it."""
        return not self.labels.get(CONFIG_CHECKSUM, "").startswith(OURS)


def object_name(name: str, config_checksum: str, ca_checksum: str, initiated: str) -> str:
    """Return the name of the Secret for a config, signer and rotation."""
    parts = [name, hashlib.sha256((config_checksum + ca_checksum).encode()).hexdigest()[:8]]
    if initiated:
        parts.append(hashlib.sha256(initiated.encode()).hexdigest()[:5])
    return "-".join(parts)


def checksum(content: bytes) -> str:
    """Return a checksum that is short enough for a label and recognizably ours."""
    return OURS + hashlib.sha256(content).hexdigest()[:32]


def data_checksum(data: Mapping[str, bytes]) -> str:
    """Return the checksum of a Secret's data."""
    digest = hashlib.sha256()
    for key, value in sorted(data.items()):
        digest.update(f"{len(key)}:{key}:{len(value)}:".encode() + value)
    return OURS + digest.hexdigest()[:32]


def rendered(key: Key, labels: Mapping[str, str], data: Mapping[str, bytes]) -> JsonObject:
    """Return the Secret to create."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": dict(labels)},
        "type": TLS if {"tls.crt", "tls.key"} <= data.keys() else OPAQUE,
        "immutable": True,
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def decoded(obj: JsonObject) -> SecretData:
    """Return the data of a Secret.

    Raises:
        SecretsManagerError: A value is not base64.
    """
    try:
        return {k: base64.b64decode(v, validate=True) for k, v in map_at(obj, "data").items()}
    except (binascii.Error, TypeError, ValueError):
        raise SecretsManagerError(
            f"Secret {Key.of(obj)} holds a value that is not valid base64"
        ) from None


def unix(text: str | None) -> int | None:
    """Return the seconds in a label, or None if it is empty or not a number."""
    return int(text) if text and text.isascii() and text.isdigit() else None


def moment(text: str | None) -> datetime | None:
    """Return the time in a label, or None if it is not one, such as a year after 9999."""
    seconds = unix(text)
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
