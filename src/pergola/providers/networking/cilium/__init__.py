"""The network plugin `cilium`: Networks of type `cilium`, from config to manifests (spec 40 §6).

`config` is what users write, `checks` what is wrong with it, `advice` what is odd; `routing`,
`ipam` and `values` compute what it means, `config_map` tells agents, `render` makes the objects;
`observe` reads what is not in the Network, `node_local_dns` is the webhook; `plugin` ties them.
"""

from pergola.providers.networking.cilium.config import NETWORK_CONFIG, NetworkConfig, NetworkStatus
from pergola.providers.networking.cilium.plugin import SHOOT_WEBHOOKS, Cilium

__all__ = ["NETWORK_CONFIG", "SHOOT_WEBHOOKS", "Cilium", "NetworkConfig", "NetworkStatus"]
