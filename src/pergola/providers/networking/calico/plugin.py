"""The network plugin `calico` (spec 40 §5)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import Final

from pergola.api.field_errors import Cause
from pergola.api.objects import JsonObject
from pergola.bundle.image_vector import ImageVector
from pergola.extension_api.cluster import Shoot
from pergola.extensions.actuator import Context
from pergola.providers.networking.calico import checks
from pergola.providers.networking.calico.advice import advice
from pergola.providers.networking.calico.config import NetworkConfig
from pergola.providers.networking.calico.overlay_switch import (
    Nodes,
    nodes_of_shoot,
    wait_for_routes,
)
from pergola.providers.networking.calico.render import (
    Images,
    monitoring_objects,
    shoot_objects,
)
from pergola.providers.networking.calico.values import (
    FeatureGates,
    Pool,
    Values,
    compute,
    overlay_of,
)
from pergola.providers.networking.plugin import NetworkPlugin, Plan, Rendered

_GATES: Final = {
    "NonPrivilegedCalicoNode": "non_privileged_calico_node",
    "SeamlessOverlaySwitch": "seamless_overlay_switch",
}
"""The fields of `FeatureGates` by the names that operators use."""


class Calico(NetworkPlugin[NetworkConfig]):
    """Networks of type `calico`.

    Args:
        images: by default those of the package, overridden by `IMAGEVECTOR_OVERWRITE`.
        gates: the feature gates that the operator enabled.
        nodes: reads the nodes of a Shoot.
    """

    type = "calico"
    name = "networking-calico"
    config = NetworkConfig
    feature_gates = dict.fromkeys(_GATES, False)

    def __init__(
        self,
        images: ImageVector | None = None,
        gates: FeatureGates | None = None,
        nodes: Nodes = nodes_of_shoot,
    ) -> None:
        self._images = images or ImageVector.from_environment(files(__package__) / "images.yaml")
        self._gates = gates or FeatureGates()
        self._nodes = nodes

    def configure(self, gates: Mapping[str, bool]) -> None:
        """Enable feature gates; those of the constructor stay enabled."""
        switched_on = {_GATES[gate]: True for gate, is_on in gates.items() if is_on}
        self._gates = replace(self._gates, **switched_on)

    def check(self, config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
        """Yield the problems of a config; `families` are those in the Network's spec."""
        return checks.check(config, families)

    def check_shoot(self, config: NetworkConfig, shoot: Shoot) -> Iterator[Cause]:
        """Yield a problem if nothing would route Services without kube-proxy."""
        return checks.check_shoot(config, shoot)

    async def observe(self, context: Context, plan: Plan[NetworkConfig]) -> Plan[NetworkConfig]:
        """Return the plan unchanged, once an overlay may be removed.

        Raises:
            RequeueAfter: not all nodes have routes.
            ExtensionError, KubeError: the nodes of the Shoot cannot be read.
        """
        if self._gates.seamless_overlay_switch and overlay_of(plan.config) is False:
            await wait_for_routes(context, self.managed_resource(), plan.shoot, self._nodes)
        return plan

    def render(self, plan: Plan[NetworkConfig]) -> Rendered:
        """Return the objects of a plan.

        Raises:
            ExtensionError: the pod range of an IP family in use is not known yet.
        """
        values = compute(plan, self._gates)
        images = self._images_for(plan.shoot)
        return Rendered(
            shoot=shoot_objects(values, images),
            seed=monitoring_objects(values, plan.namespace),
            status=status(values, images),
            warnings=list(advice(plan)),
        )

    def _images_for(self, shoot: Shoot) -> Images:
        return partial(self._images.find, version=shoot.kubernetes_version)


def status(values: Values, images: Images) -> JsonObject:
    """Return the effective settings, for `providerStatus` (Beyond 15)."""
    return {
        "backend": values.backend,
        "dataplane": _dataplane(values),
        "ipam": values.ipam.type,
        "vethMTU": values.veth_mtu,
        **{
            name: _pool_status(pool)
            for name, pool in (("ipv4", values.ipv4), ("ipv6", values.ipv6))
            if pool is not None
        },
        "agentImage": images("calico-node"),
    }


def _dataplane(values: Values) -> str:
    if values.ebpf:
        return "ebpf"
    return "nftables" if values.nftables else "iptables"


def _pool_status(pool: Pool) -> JsonObject:
    return {"pool": pool.encapsulation, "mode": pool.mode, "natOutgoing": pool.nat_outgoing}
