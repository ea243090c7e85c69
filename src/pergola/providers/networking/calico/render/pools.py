"""The IPPools that replace a wrong default of calico-node (spec 40 §5.5)."""

from pergola.api.objects import JsonObject
from pergola.manifests import manifest
from pergola.providers.networking.calico.render.conventions import CALICO
from pergola.providers.networking.calico.values import Pool, Values


def ip_pools(values: Values) -> list[JsonObject]:
    """Return the pools, IPv4 first.

    calico-node creates a missing pool but never changes one. If the config sets the overlay, the
    pool is rendered, so that it follows the config.
    """
    return [
        *([_ipv4(values, values.ipv4)] if values.ipv4 and values.overlay is not None else []),
        *_no_snat(values),
        *([_ipv6(values.ipv6)] if values.ipv6 else []),
    ]


def _ipv4(values: Values, pool: Pool) -> JsonObject:
    vxlan = values.overlay is True and values.vxlan_overlay
    ipip = values.overlay is True and not vxlan
    return _pool(
        "default-ipv4-ippool",
        cidr=pool.cidr,
        blockSize=26,
        ipipMode="Always" if ipip else "Never",
        vxlanMode="Always" if vxlan else "Never",
        natOutgoing=pool.nat_outgoing,
        nodeSelector="all()",
        allowedUses=["Workload", "Tunnel"],
    )


def _no_snat(values: Values) -> list[JsonObject]:
    """Return a pool of the nodes, because Calico translates addresses of packets to non-pools."""
    if values.overlay is not False or values.node_range is None:
        return []
    return [
        _pool("no-snat-for-node-cidr", cidr=values.node_range, disabled=True, disableBGPExport=True)
    ]


def _ipv6(pool: Pool) -> JsonObject:
    return _pool(
        "default-ipv6-ippool",
        cidr=pool.cidr,
        blockSize=122,
        ipipMode="Never",
        vxlanMode="Never",
        natOutgoing=pool.nat_outgoing,
        nodeSelector="all()",
        allowedUses=["Workload", "Tunnel"],
    )


def _pool(name: str, **spec: object) -> JsonObject:
    return manifest(f"{CALICO}/v1", "IPPool", name, spec=spec)
