"""The IPAM mode: chosen once, kept in `status.state`, never changed.

A cluster whose agents change to another mode loses the addresses of its pods. So never
render anything for an existing cluster whose mode is unknown.
"""

from dataclasses import dataclass, field
from typing import Final, Self

from pergola.api.objects import JsonObject, map_at
from pergola.providers.networking.cilium.config import GROUP

KUBERNETES: Final = "kubernetes"
CLUSTER_POOL: Final = "cluster-pool"
MASK_SIZES: Final = {"ipv4": "24", "ipv6": "120"}
_KEY: Final = "ipam"
_POOL_PREFIX: Final = "cluster-pool-"


@dataclass(frozen=True, slots=True)
class Ipam:
    """The allocation of addresses to pods.

    Attributes:
        mode: `kubernetes`, unless the cluster is older than that default.
        pool: the keys of `cilium-config` that describe the pool of mode `cluster-pool`.
        is_known: whether the mode was observed or chosen; a guess must not be stored.
    """

    mode: str = KUBERNETES
    pool: dict[str, str] = field(default_factory=dict)
    is_known: bool = False

    @classmethod
    def from_state(cls, state: JsonObject) -> Self:
        """Return the mode that `state` stored earlier."""
        ipam = map_at(state, _KEY)
        mode = ipam.get("mode")
        if not isinstance(mode, str) or not mode:
            return cls()
        return cls(mode, _texts(map_at(ipam, "pool")), is_known=True)

    @classmethod
    def from_config_map(cls, config_map: JsonObject) -> Self | None:
        """Return the mode of a ConfigMap `cilium-config`, or None if it has none."""
        data = _texts(map_at(config_map, "data"))
        if not data.get(_KEY):
            return None
        pool = {key: value for key, value in data.items() if key.startswith(_POOL_PREFIX)}
        return cls(data[_KEY], pool, is_known=True)

    def state(self) -> JsonObject:
        """Return the content of `status.state`."""
        ipam: JsonObject = {"mode": self.mode}
        if self.pool:
            ipam["pool"] = dict(sorted(self.pool.items()))
        return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "NetworkState", _KEY: ipam}

    def keys(self, ranges: dict[str, str]) -> dict[str, str]:
        """Return the keys of `cilium-config`.

        Args:
            ranges: of the pods, by `ipv4` and `ipv6`, of the families in use.
        """
        keys = {_KEY: self.mode}
        if self.mode == KUBERNETES:
            keys |= {f"k8s-require-{family}-pod-cidr": "true" for family in ranges}
        if self.mode == CLUSTER_POOL:
            for family, cidr in ranges.items():
                keys[f"cluster-pool-{family}-cidr"] = cidr
                keys[f"cluster-pool-{family}-mask-size"] = MASK_SIZES[family]
        return keys | self.pool


def _texts(values: JsonObject) -> dict[str, str]:
    return {key: value for key, value in values.items() if isinstance(value, str)}
