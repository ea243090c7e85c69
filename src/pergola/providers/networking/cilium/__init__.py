"""The network plugin `cilium`: Networks of type `cilium`, from config to manifests (spec 40 §6).

`config` is the API; `checks` rejects a config and `advice` warns about one. `routing`, `ipam` and
`values` compute what it means; `config_map`, `config_constants` and `label_filter` are the agents'
settings; `render` makes the objects. `observe` reads the IPAM mode of a cluster,
`node_local_dns` is a webhook in the Shoot, and `plugin` connects them.
"""

from pergola.providers.networking.cilium.config import NETWORK_CONFIG, NetworkConfig, NetworkStatus
from pergola.providers.networking.cilium.plugin import SHOOT_WEBHOOKS, Cilium

__all__ = ["NETWORK_CONFIG", "SHOOT_WEBHOOKS", "Cilium", "NetworkConfig", "NetworkStatus"]
