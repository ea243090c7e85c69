"""The credentials with which a Seed stores backups: gardenlet restarts when they change."""

import hashlib
from typing import Final

import orjson

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.operator.gardenlet.errors import GardenletFailed

_LENGTH: Final = 8


async def backup_checksum(gardenlet: JsonObject, virtual: Client) -> str:
    """Return the name and a checksum of a Seed's Secret for backups; empty without one.

    Raises:
        GardenletFailed: The Secret does not exist.
        KubeError: The virtual cluster refused, or did not answer.
    """
    path = ("spec", "config", "seedConfig", "spec", "backup", "credentialsRef")
    reference = map_at(gardenlet, *path)
    if (reference.get("apiVersion"), reference.get("kind")) != ("v1", SECRET.kind):
        return ""
    key = Key(str(reference.get("namespace") or ""), str(reference.get("name") or ""))
    secret = await virtual.find(SECRET, key)
    if secret is None:
        raise GardenletFailed(
            f"Secret {key}, which {'.'.join(path)} names, does not exist: create it in the "
            "virtual cluster"
        )
    data = orjson.dumps(map_at(secret, "data"), option=orjson.OPT_SORT_KEYS)
    return f"{key.name}-{hashlib.sha256(data).hexdigest()[:_LENGTH]}"
