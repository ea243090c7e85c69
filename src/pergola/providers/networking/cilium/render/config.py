"""The ConfigMaps `cilium-config` and `label-prefix-conf`."""

import orjson

from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium import config_map, label_filter
from pergola.providers.networking.cilium.render.pods import in_kube_system
from pergola.providers.networking.cilium.values import Values


def cilium_config(values: Values) -> JsonObject:
    """Return the settings of agents and operator."""
    return in_kube_system("v1", "ConfigMap", config_map.NAME, data=dict(config_map.config(values)))


def label_prefixes() -> JsonObject:
    """Return the rules that exclude labels from identities; immutable."""
    text = orjson.dumps(label_filter.label_prefixes(), option=orjson.OPT_INDENT_2).decode()
    return in_kube_system(
        "v1", "ConfigMap", label_filter.NAME, immutable=True, data={label_filter.KEY: text}
    )
