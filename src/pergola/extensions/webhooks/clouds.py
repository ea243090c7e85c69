"""What clouds cannot do, as rules for the configs of network plugins (spec 40 §1.1, §7.1)."""

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
        because="Azure carries no IP-in-IP, so that there is nobody for bird to talk to",
    ),
    ConfigRule(
        path=("vxlan", "enabled"),
        unfit=(None, False),
        instead=True,
        because="Azure carries no IP-in-IP, so that an overlay has to be VXLAN",
        when=_wants_overlay,
    ),
)
"""Azure drops IP-in-IP. A config that says nothing of the backend means bird, and changes too."""

AZURE: Final[Mapping[str, Mutate]] = {"calico": config_mutator(CALICO, AZURE_CALICO)}
"""For `network_mutator`: Azure's changes by the type of the Network."""
