"""The content of an export of a Garden."""

from typing import Final, NamedTuple

import orjson

from pergola.api.objects import JsonObject, map_at, maps_at, name_of

_GARDEN: Final = "garden"
_CREDENTIALS: Final = "credentials"
_PROVIDED: Final = "provided"
_ROTATIONS: Final = "rotations"


class TransferError(Exception):
    """A Garden cannot be exported or imported; the text says why."""


class Export(NamedTuple):
    """A Garden, with what a new runtime cluster needs of the old one.

    Attributes:
        garden: As a user would apply it.
        credentials: Managed Secrets, from the oldest to the newest.
        provided: Secrets and ConfigMaps that users provide: those that the Garden names, and those
            that a label makes a part of it.
        rotations: Those in progress, such as `certificateAuthorities: Prepared`.
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
        """The identity of the virtual cluster, which is the Garden's for its whole life."""
        return identity_of(self.garden)


def identity_of(garden: JsonObject) -> str:
    """Return the identity that a Garden gives to its virtual cluster."""
    return str(map_at(garden, "spec", "virtualCluster", "gardener").get("clusterIdentity", ""))


def encode(export: Export) -> bytes:
    """Return an export as JSON; it is secret."""
    return orjson.dumps(export._asdict())


def decode(content: bytes) -> Export:
    """Return an export from JSON.

    Raises:
        TransferError: It is not one.
    """
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= {_GARDEN, _CREDENTIALS, _PROVIDED}:
        raise TransferError("it holds no Garden: export again")
    return Export(
        map_at(found, _GARDEN),
        tuple(maps_at(found, _CREDENTIALS)),
        tuple(maps_at(found, _PROVIDED)),
        tuple(map(str, found.get(_ROTATIONS, ()))),
    )
