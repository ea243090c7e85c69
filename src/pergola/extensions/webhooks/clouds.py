"""Limits of clouds, as rules for the configs of network plugins (spec 40 §1.1, §7.1)."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, map_at
from pergola.extensions.webhooks.mutation import Mutate
from pergola.extensions.webhooks.provider_configs import ConfigRule, config_mutator

CALICO: Final = GroupVersionKind(
    "calico.networking.extensions.gardener.cloud", "v1alpha1", "NetworkConfig"
)


def _wants_overlay(config: JsonObject) -> bool:
    return map_at(config, "overlay").get("enabled") is True


AZURE_CALICO: Final = (
    ConfigRule(
        path=("backend",),
        unfit=(None, "bird"),
        instead="none",
        because="Azure drops IP-in-IP, so that bird cannot reach its peers",
    ),
    ConfigRule(
        path=("vxlan", "enabled"),
        unfit=(None, False),
        instead=True,
        because="Azure drops IP-in-IP, so that an overlay must use VXLAN",
        when=_wants_overlay,
    ),
)
"""Azure drops IP-in-IP. A config without a backend means bird, and is changed as well."""

AZURE: Final[Mapping[str, Mutate]] = {"calico": config_mutator(CALICO, AZURE_CALICO)}
"""Azure's changes by type of the Network, for `network_mutator`."""
