"""Istio's kinds that route connections, without their schemas."""

import contextlib

from pergola.api.kinds import CRD, DESTINATION_RULE, GATEWAY, VIRTUAL_SERVICE
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.testing.crds import is_established, served
from pergola.testing.objects import definition
from pergola.testing.waiting import until


async def install_istio_crds(client: Client) -> None:
    """Return when Gateways, VirtualServices and DestinationRules are served."""
    for kind in (GATEWAY, VIRTUAL_SERVICE, DESTINATION_RULE):
        crd = definition(kind)
        with contextlib.suppress(AlreadyExists):  # of another test, which shares the cluster
            await client.create(crd)
        await until(client, CRD, Key.of(crd), is_established)
        await served(client, kind)
