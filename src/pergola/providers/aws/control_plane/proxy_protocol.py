"""The proxy protocol of the nginx addon, if the webhook missed its ConfigMap (spec 31 §8).

Webhooks in Shoots fail open, so a ConfigMap that is created while the extension restarts stays as
it was written, and load balancers speak the proxy protocol to an nginx that does not expect it.
Services need no repetition: the cloud controller updates them itself.
"""

from contextlib import suppress

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Key, map_at
from pergola.extension_api.cluster import Shoot
from pergola.extensions.actuator import Context
from pergola.extensions.shoot_access import shoot_client
from pergola.kube.errors import NotFound
from pergola.kube.selectors import format_selector
from pergola.manifests import KUBE_SYSTEM
from pergola.providers.aws.control_plane.webhooks.catalog import NGINX, PROXY_PROTOCOL


async def repeat_proxy_protocol(context: Context, shoot: Shoot) -> None:
    """Correct the ConfigMap; send no request unless the Shoot has the addon.

    One that a user of the Shoot made immutable stays: it must not fail the ControlPlane.

    Raises:
        ExtensionError: the Shoot's kubeconfig is missing.
        KubeError: an API server refused, or did not answer.
    """
    addon = map_at(shoot.raw, "spec", "addons", "nginxIngress")
    if addon.get("enabled") is not True or context.cluster is None or not shoot.is_awake:
        return
    async with shoot_client(context.client, context.cluster) as client:
        if client is None:
            return
        for found in await client.list(CONFIG_MAP, KUBE_SYSTEM, labels=format_selector(NGINX)):
            if map_at(found, "data").get(PROXY_PROTOCOL) == "true" or found.get("immutable"):
                continue
            with suppress(NotFound):  # it was deleted in the meantime
                await client.patch(CONFIG_MAP, Key.of(found), {"data": {PROXY_PROTOCOL: "true"}})
