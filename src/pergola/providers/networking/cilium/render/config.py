"""The ConfigMaps `cilium-config` and `label-prefix-conf`."""

import orjson

from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium import config_map
from pergola.providers.networking.cilium.render.parts import obj
from pergola.providers.networking.cilium.values import Values


def cilium_config(values: Values) -> JsonObject:
    """What agents and operator are told."""
    return obj("v1", "ConfigMap", config_map.NAME, data=dict(config_map.config(values)))


def label_prefixes() -> JsonObject:
    """Which labels of pods make no identity; immutable."""
    text = orjson.dumps(config_map.label_prefixes(), option=orjson.OPT_INDENT_2).decode()
    return obj(
        "v1",
        "ConfigMap",
        config_map.LABEL_PREFIXES_NAME,
        immutable=True,
        data={config_map.LABEL_PREFIXES_KEY: text},
    )
