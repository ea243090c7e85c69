"""Objects that other parts of a landscape create, and that checks of a place need."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from conformance.places.place import PATIENCE, SYSTEM, Site
from pergola.api import marks
from pergola.api.kinds import SERVICE_ACCOUNT
from pergola.api.objects import JsonObject, Key
from pergola.kube.errors import KubeError
from pergola.manifests import manifest
from pergola.testing.waiting import until

ACCOUNT: Final = "quiet"
"""A ServiceAccount without automounting, in the namespace of a site."""
HOST: Final = "api.e2e.internal.example.com"
"""The API server's host that the oracle configures, and that gateways lead to."""
_MANAGER: Final = "pergola-places"
_PAUSE: Final = 0.2
_CONSIDER: Final = {
    "high-availability-config.resources.gardener.cloud/consider": "true",
    "system-components-config.resources.gardener.cloud/consider": "true",
}


async def furnish(site: Site) -> None:
    """Create the namespace for checks, an account there, and a gateway to the API server."""
    labels = _CONSIDER | ({marks.ROLE: "shoot"} if site.place.is_runtime else {})
    client, namespace = site.target.client, site.namespace
    route: JsonObject = {"hosts": HOST, "istio-namespace": namespace}
    ports: JsonObject = {"ports": [{"port": 443}]}
    for obj in (
        manifest("v1", "Namespace", namespace, labels=labels),
        manifest(
            "v1",
            "ServiceAccount",
            ACCOUNT,
            namespace=namespace,
            automountServiceAccountToken=False,
        ),
        manifest("v1", "ConfigMap", "istio-internal-load-balancing", namespace=namespace, data=route),
        manifest("v1", "Service", "istio-ingressgateway-internal", namespace=namespace, spec=ports),
    ):
        await client.apply(obj, manager=_MANAGER, force=True)
    for each in {namespace, SYSTEM}:
        await until(client, SERVICE_ACCOUNT, Key(each, "default"), lambda _: True)


async def eventually(what: str, probe: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a probe returns True: API servers learn of registrations by watching."""
    last = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    if await probe():
                        return
                    last = ""
                except KubeError as error:
                    last = f": {error}"
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE:g} s for {what}{last}") from None
