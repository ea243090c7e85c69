"""Facts about a Secret and its token, but no token, key or kubeconfig."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import orjson

from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    resource_version_of,
    uid_of,
)
from pergola.resource_manager.controllers.token_requestor import kubeconfig, names

_READ_ANNOTATIONS: Final = (
    *(names.NAME, names.NAMESPACE, names.LABELS, names.EXPIRATION, names.INJECT_CA),
    *(names.RENEW, names.TARGET_NAME, names.TARGET_NAMESPACE),
)
_CREDENTIALS: Final = frozenset({names.KEY_TOKEN, names.KEY_KUBECONFIG})


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """The claims of a JWT, which only the API server can verify.

    Attributes:
        digest: SHA-256 of the token, to detect changes.
        issued: The claim `iat`, or None.
        expires: The claim `exp`, or None.
        account_uid: The uid of its ServiceAccount; empty if the token names none or is opaque.
    """

    digest: bytes
    issued: datetime | None = None
    expires: datetime | None = None
    account_uid: str = ""

    def has_expired(self, now: datetime) -> bool:
        """Return whether no server accepts the token any longer."""
        return self.expires is not None and self.expires <= now

    def remaining_share(self, now: datetime) -> float | None:
        """Return the remaining share of its lifetime, at most 1; None if unknown."""
        if self.issued is None or self.expires is None or self.expires <= self.issued:
            return None
        return max(0.0, min(1.0, (self.expires - now) / (self.expires - self.issued)))


@dataclass(frozen=True, slots=True)
class Holding:
    """The credentials in the data of a Secret.

    Attributes:
        keys: The existing data keys among `token` and `kubeconfig`.
        token: The effective token: that of the kubeconfig's current user if there is a kubeconfig.
        ca: Digest of the effective CA, or None.
        problem: Why the kubeconfig cannot contain a token; None if it can.
        cluster_problem: Why it cannot contain a CA.
    """

    keys: frozenset[str] = frozenset()
    token: TokenFacts | None = None
    ca: bytes | None = None
    problem: str | None = None
    cluster_problem: str | None = None


@dataclass(frozen=True, slots=True)
class SeenSecret:
    """A Secret of the source cluster.

    Attributes:
        annotations: The annotations that this controller reads.
    """

    key: Key
    uid: str
    version: str
    resource_class: str
    annotations: dict[str, str]
    holding: Holding


def observe(secret: JsonObject) -> SeenSecret:
    """Return the facts about a Secret, without a reference to the object."""
    annotations = annotations_of(secret)
    return SeenSecret(
        key=Key.of(secret),
        uid=uid_of(secret),
        version=resource_version_of(secret),
        resource_class=labels_of(secret).get(names.CLASS, ""),
        annotations={key: str(annotations[key]) for key in _READ_ANNOTATIONS if key in annotations},
        holding=holding_of(secret),
    )


def holding_of(secret: JsonObject) -> Holding:
    """Return the credentials in a Secret of either cluster."""
    keys = _CREDENTIALS & map_at(secret, "data").keys()
    try:
        found = _credentials_of(secret)
    except kubeconfig.KubeconfigError as error:
        return Holding(keys, problem=str(error))
    ca = digest_of(found.ca) if found.ca else None
    return Holding(keys, facts_of(found.token), ca, cluster_problem=found.cluster_problem)


def token_of(secret: JsonObject) -> bytes:
    """Return the token in a Secret, or empty bytes."""
    try:
        return _credentials_of(secret).token
    except kubeconfig.KubeconfigError:
        return b""


def data_of(secret: JsonObject, key: str) -> bytes:
    """Return the value of a data key, or empty bytes."""
    text = map_at(secret, "data").get(key)
    try:
        return base64.b64decode(text) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def facts_of(token: bytes) -> TokenFacts | None:
    """Return the facts about a token, or None for an empty one. Never raises: tokens are input."""
    if not token.strip():
        return None
    claims = _claims(token)
    bound = map_at(claims, "kubernetes.io")
    account = map_at(bound, "serviceaccount")
    namespace, name, uid = bound.get("namespace"), account.get("name"), account.get("uid")
    is_named = all(isinstance(value, str) for value in (namespace, name, uid))
    return TokenFacts(
        digest=digest_of(token),
        issued=_time(claims.get("iat")),
        expires=_time(claims.get("exp")),
        account_uid=str(uid) if is_named else "",
    )


def digest_of(content: bytes) -> bytes:
    """Return the SHA-256, to compare secret content without keeping it."""
    return hashlib.sha256(content).digest()


def _credentials_of(secret: JsonObject) -> kubeconfig.Found:
    """Return the effective credentials; those beside a kubeconfig have no effect."""
    if names.KEY_KUBECONFIG in map_at(secret, "data"):
        return kubeconfig.credentials_in(data_of(secret, names.KEY_KUBECONFIG))
    return kubeconfig.Found(data_of(secret, names.KEY_TOKEN), data_of(secret, names.KEY_CA))


def _claims(token: bytes) -> JsonObject:
    parts = token.strip().split(b".")
    if len(parts) != 3:
        return {}
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
    except (binascii.Error, ValueError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _time(seconds: object) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
