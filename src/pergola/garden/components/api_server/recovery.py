"""Recovery of a lost encryption key from the encryption configurations that API servers use."""

import base64
from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.objects import JsonObject, map_at, maps_at, name_of
from pergola.kube.yaml import YamlError, parse
from pergola.secrets_manager.configs import SecretData
from pergola.secrets_manager.loss import Recover

CONFIGURATION: Final = "encryption-configuration.yaml"
"""The key of an encryption configuration in its Secret."""
DEFAULT_PROVIDER: Final = "aescbc"


def recovery(mounted: str) -> Recover:
    """Return a function that recovers a key: the only one in the configurations that no Secret has.

    Args:
        mounted: The Secret that the API server mounts; if it is missing, all are considered.
    """

    def recover(copies: Sequence[JsonObject], older: Sequence[SecretData]) -> SecretData | None:
        chosen = [copy for copy in copies if name_of(copy) == mounted] or copies
        found = {key["key"]: key for copy in chosen for key in _keys(copy)}
        for data in older:
            found.pop(data.get("key", b""), None)
        return next(iter(found.values())) if len(found) == 1 else None

    return recover


def _keys(copy: JsonObject) -> Iterator[SecretData]:
    """Yield the keys in an encryption configuration; none if it is unusable."""
    try:
        configuration = parse(base64.b64decode(map_at(copy, "data").get(CONFIGURATION) or ""))
    except (YamlError, TypeError, ValueError):
        return
    resources = maps_at(configuration, "resources") if isinstance(configuration, dict) else []
    for entry in maps_at(resources[0], "providers") if resources else ():
        for provider in entry:
            for key in maps_at(entry, provider, "keys"):
                yield from _data(provider, key)


def _data(provider: str, key: JsonObject) -> Iterator[SecretData]:
    """Yield the data of a Secret that renders to this key."""
    name, secret = str(key.get("name") or ""), str(key.get("secret") or "")
    try:
        raw = base64.b64decode(secret, validate=True)
    except ValueError:  # not base64, or not even ASCII
        return
    if name and raw:
        yield {
            "provider": b"" if provider == DEFAULT_PROVIDER else provider.encode(),
            "key": name.encode(),
            "secret": raw,
            "encoding": b"none",
        }
