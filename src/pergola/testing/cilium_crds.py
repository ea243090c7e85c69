"""The kinds of cilium that its plugin uses; in a Shoot, cilium's operator installs them."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.testing.crds import serve

_KINDS: Final = {
    "CiliumNetworkPolicy": ("ciliumnetworkpolicies", "Namespaced"),
    "CiliumClusterwideNetworkPolicy": ("ciliumclusterwidenetworkpolicies", "Cluster"),
    "CiliumLocalRedirectPolicy": ("ciliumlocalredirectpolicies", "Namespaced"),
}


def cilium_crds() -> list[JsonObject]:
    """Return CRDs with open schemas: cilium itself validates policies."""
    return [open_crd("cilium.io", "v2", kind, *how) for kind, how in _KINDS.items()]


def open_crd(group: str, version: str, kind: str, plural: str, scope: str) -> JsonObject:
    """Return the CRD of another project's kind, with an open schema."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served: JsonObject = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural},
            "scope": scope,
            "versions": [served],
        },
    }


async def install(client: Client, crds: list[JsonObject]) -> None:
    """Install the CRDs, and wait until the API server serves their kinds."""
    await serve(client, *crds)
