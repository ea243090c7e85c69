"""A gardenlet's access to the virtual cluster: address and authority (spec 21 §14, step 2)."""

import base64
import binascii
from typing import NamedTuple

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.garden.components.gardener_access import EXTERNAL
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import parse_cluster
from pergola.operator.gardenlet.errors import GardenletFailed
from pergola.operator.virtual_cluster import kubeconfig_in


class GardenAddress(NamedTuple):
    """The address and the authority of the virtual cluster's API server.

    Attributes:
        ca: PEM; empty for the system authorities of gardenlet.
    """

    server: str
    ca: bytes


async def garden_address(runtime: Client) -> GardenAddress:
    """Return the public address of the virtual cluster.

    Raises:
        GardenletFailed: It is not known yet.
        KubeError: The runtime cluster refused, or the kubeconfig cannot be used.
    """
    key = Key(NAMESPACE, EXTERNAL)
    content = kubeconfig_in(await runtime.find(SECRET, key) or {})
    if not content:
        raise GardenletFailed(
            f"Secret {key} of the runtime cluster has no kubeconfig of the virtual cluster yet: "
            "wait until the Garden is reconciled"
        )
    config = parse_cluster(content, f"Secret {key}")
    return GardenAddress(config.server, config.ca or b"")


def address_for(gardenlet: JsonObject, default: GardenAddress) -> GardenAddress:
    """Return the address for one gardenlet, whose configuration may set another one.

    Raises:
        GardenletFailed: Its certificate authority is not base64.
    """
    connection = map_at(gardenlet, "spec", "config", "gardenClientConnection")
    server = str(connection.get("gardenClusterAddress") or default.server)
    try:
        ca = base64.b64decode(str(connection.get("gardenClusterCACert") or ""), validate=True)
    except binascii.Error:
        raise GardenletFailed(
            f"spec.config.gardenClientConnection.gardenClusterCACert of Gardenlet "
            f"{Key.of(gardenlet)} is not base64: encode the PEM certificates"
        ) from None
    return GardenAddress(server, ca or default.ca)
