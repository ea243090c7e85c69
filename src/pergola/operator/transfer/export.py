"""The content of an export of a Garden."""

from typing import Final, NamedTuple

import orjson

from pergola.api.objects import JsonObject, map_at, maps_at, name_of

_GARDEN: Final = "garden"
_CREDENTIALS: Final = "credentials"
_PROVIDED: Final = "provided"
_ROTATIONS: Final = "rotations"


class TransferError(Exception):
    """A Garden cannot be exported or imported; the text gives the reason."""


class Export(NamedTuple):
    """A Garden, with everything that a new runtime cluster needs from the old one.

    Attributes:
        garden: As a user would apply it.
        credentials: Managed Secrets, oldest first.
        provided: User-provided Secrets and ConfigMaps: those that the Garden names, and those that
            belong to it by label.
        rotations: The rotations in progress, such as `certificateAuthorities: Prepared`.
    """

    garden: JsonObject
    credentials: tuple[JsonObject, ...]
    provided: tuple[JsonObject, ...]
    rotations: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the Garden."""
        return name_of(self.garden)

    @property
    def identity(self) -> str:
        """The identity of the virtual cluster, which never changes during the Garden's life."""
        return identity_of(self.garden)


def identity_of(garden: JsonObject) -> str:
    """Return the identity of a Garden's virtual cluster."""
    return str(map_at(garden, "spec", "virtualCluster", "gardener").get("clusterIdentity", ""))


def encode(export: Export) -> bytes:
    """Return an export as JSON; it is secret."""
    return orjson.dumps(export._asdict())


def decode(content: bytes) -> Export:
    """Return an export from JSON.

    Raises:
        TransferError: It is not an export.
    """
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= {_GARDEN, _CREDENTIALS, _PROVIDED}:
        raise TransferError("it contains no Garden: export again")
    return Export(
        map_at(found, _GARDEN),
        tuple(maps_at(found, _CREDENTIALS)),
        tuple(maps_at(found, _PROVIDED)),
        tuple(map(str, found.get(_ROTATIONS, ()))),
    )
