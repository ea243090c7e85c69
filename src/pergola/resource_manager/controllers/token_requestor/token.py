"""The claims of a JWT, which only the API server can verify."""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from pergola.api.objects import JsonObject, Key, map_at


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """Facts about a token, without the token.

    Attributes:
        digest: SHA-256 of the token, to detect changes. issued, expires: The claims `iat` and
            `exp`, or None.
        account: The ServiceAccount of the token; None if it has none or is opaque.
        account_uid: The uid of that ServiceAccount; empty if the token does not name it.
    """

    digest: bytes
    issued: datetime | None = None
    expires: datetime | None = None
    account: Key | None = None
    account_uid: str = ""

    def has_expired(self, now: datetime) -> bool:
        """Return whether no server accepts the token any longer."""
        return self.expires is not None and self.expires <= now

    def remaining_share(self, now: datetime) -> float | None:
        """Return the remaining share of its lifetime, at most 1; None if unknown."""
        if self.issued is None or self.expires is None or self.expires <= self.issued:
            return None
        return max(0.0, min(1.0, (self.expires - now) / (self.expires - self.issued)))


def facts_of(token: bytes) -> TokenFacts | None:
    """Return the facts about a token, or None for an empty one. Never raises: tokens are input."""
    if not token.strip():
        return None
    claims = _claims(token)
    bound = map_at(claims, "kubernetes.io")
    account = map_at(bound, "serviceaccount")
    namespace, name, uid = bound.get("namespace"), account.get("name"), account.get("uid")
    known = isinstance(namespace, str) and isinstance(name, str)
    return TokenFacts(
        digest=digest_of(token),
        issued=_time(claims.get("iat")),
        expires=_time(claims.get("exp")),
        account=Key(str(namespace), str(name)) if known else None,
        account_uid=uid if known and isinstance(uid, str) else "",
    )


def digest_of(content: bytes) -> bytes:
    """Return the SHA-256, to compare secret content without keeping it."""
    return hashlib.sha256(content).digest()


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
