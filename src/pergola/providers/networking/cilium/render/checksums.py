"""Checksums that restart pods when the configuration changes."""

import hashlib
from typing import Final

import orjson

from pergola.api.objects import JsonObject

CILIUM: Final = "checksum/configmap-cilium"
LABEL_PREFIX: Final = "checksum/configmap-label-prefix"


def checksum(config_map: JsonObject) -> str:
    """Return a checksum of a ConfigMap's data, independent of the order of its keys."""
    data = orjson.dumps(config_map.get("data"), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(data).hexdigest()
