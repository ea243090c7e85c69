"""The bootstrap token with which gardenlet requests its client certificate (spec 21 §14, step 4).

The token is valid for a day. While a Gardenlet waits for its Seed, it is renewed before it expires.
"""

import base64
import hashlib
import random
import string
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from pergola.api.conditions import timestamp
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.yaml import dump
from pergola.manifests import KUBE_SYSTEM, manifest
from pergola.operator.gardenlet.connection import GardenAddress
from pergola.operator.gardenlet.names import GARDENLET, PROGRAM
from pergola.operator.run.direct import MANAGER
from pergola.pki import Token, kubeconfig

VALIDITY: Final = timedelta(hours=24)
_RENEWED: Final = timedelta(hours=1)
"""The time before the expiry of a token at which it is renewed."""
_TYPE: Final = "bootstrap.kubernetes.io/token"
_ID_LENGTH: Final = 6
_SECRET_LENGTH: Final = 16
_CHARACTERS: Final = string.ascii_lowercase + string.digits


class BootstrapToken(NamedTuple):
    """A token, stored in a Secret in `kube-system` of the virtual cluster."""

    id: str
    secret: str

    @property
    def text(self) -> str:
        """The token as clients present it."""
        return f"{self.id}.{self.secret}"

    @property
    def key(self) -> Key:
        """Its Secret."""
        return Key(KUBE_SYSTEM, f"bootstrap-token-{self.id}")

    def kubeconfig(self, address: GardenAddress) -> str:
        """Return a kubeconfig with it."""
        return dump(kubeconfig(PROGRAM, address.server, address.ca, Token(self.text)))


def token_id(gardenlet: Key) -> str:
    """Return the id of a Gardenlet's token, which never changes."""
    name = f"{gardenlet.namespace}--{gardenlet.name}"
    return hashlib.sha256(name.encode()).hexdigest()[:_ID_LENGTH]


def token_secret(token: BootstrapToken, gardenlet: Key, now: datetime) -> JsonObject:
    """Return the Secret of a new token."""
    # gardener-controller-manager parses the Gardenlet from the end of the description.
    used = f"{GARDENLET.api_version}.{GARDENLET.kind} resource {gardenlet}."
    data = {
        "description": f"A bootstrap token for the Gardenlet for {used}",
        "token-id": token.id,
        "token-secret": token.secret,
        "expiration": timestamp(now + VALIDITY),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
    }
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
    return manifest("v1", "Secret", token.key.name, namespace=KUBE_SYSTEM, type=_TYPE, data=encoded)


def token_in(secret: JsonObject, now: datetime) -> BootstrapToken | None:
    """Return the token in a Secret; None if it expires soon, or is incomplete."""
    found = BootstrapToken(_text(secret, "token-id"), _text(secret, "token-secret"))
    try:
        expires = datetime.fromisoformat(_text(secret, "expiration"))
    except ValueError:
        return None
    is_valid = expires.tzinfo is not None and expires.astimezone(UTC) - now > _RENEWED
    return found if is_valid and len(found.secret) == _SECRET_LENGTH else None


class BootstrapTokens:
    """Issues bootstrap tokens.

    Args:
        virtual: For the virtual cluster.
        randomness: Must not be predictable.
    """

    def __init__(self, virtual: Client, randomness: random.Random) -> None:
        self._virtual = virtual
        self._random = randomness

    async def apply(self, gardenlet: Key, now: datetime) -> BootstrapToken:
        """Return the token of a Gardenlet: the existing one, unless it expires soon.

        Raises:
            KubeError: The virtual cluster refused, or did not answer.
        """
        fresh = BootstrapToken(
            token_id(gardenlet), "".join(self._random.choices(_CHARACTERS, k=_SECRET_LENGTH))
        )
        live = await self._virtual.find(SECRET, fresh.key)
        current = token_in(live or {}, now)
        if current is not None:
            return current
        secret = token_secret(fresh, gardenlet, now)
        await self._virtual.apply(secret, manager=MANAGER, force=True)
        return fresh


def _text(secret: JsonObject, name: str) -> str:
    try:
        return base64.b64decode(str(map_at(secret, "data").get(name) or "")).decode()
    except ValueError:
        return ""
