"""Istio's kinds that route connections, without their schemas."""

from pergola.api.kinds import DESTINATION_RULE, ENVOY_FILTER, GATEWAY, VIRTUAL_SERVICE
from pergola.kube.client import Client
from pergola.testing.crds import definition, serve


async def install_istio_crds(client: Client) -> None:
    """Install all kinds that configure a gateway, and wait until the API server serves them."""
    kinds = (GATEWAY, VIRTUAL_SERVICE, DESTINATION_RULE, ENVOY_FILTER)
    await serve(client, *map(definition, kinds))
