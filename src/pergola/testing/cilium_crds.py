"""The kinds of cilium that its plugin uses; in a Shoot, cilium's operator installs them."""

from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.kube.client import Client
from pergola.testing.crds import definition, serve

_KINDS: Final = {
    "CiliumNetworkPolicy": ("ciliumnetworkpolicies", "Namespaced"),
    "CiliumClusterwideNetworkPolicy": ("ciliumclusterwidenetworkpolicies", "Cluster"),
    "CiliumLocalRedirectPolicy": ("ciliumlocalredirectpolicies", "Namespaced"),
}


def cilium_crds() -> list[JsonObject]:
    """Return CRDs with open schemas: cilium itself validates policies."""
    return [
        definition(GroupVersionKind("cilium.io", "v2", kind), plural=plural, scope=scope)
        for kind, (plural, scope) in _KINDS.items()
    ]


async def install(client: Client, crds: list[JsonObject]) -> None:
    """Install the CRDs, and wait until the API server serves their kinds."""
    await serve(client, *crds)
