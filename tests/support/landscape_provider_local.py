"""Machines and credentials of provider-local in a landscape."""

from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, map_at
from pergola.manifests import manifest
from tests.support.landscape import SeedCluster

MACHINE: Final = GroupVersionKind("machine.sapcloud.io", "v1alpha1", "Machine")


def provider_secret(seed: SeedCluster) -> JsonObject:
    """Return the credentials of provider-local: the cluster in which it makes machines."""
    kubeconfig = seed.site.sandbox.kubeconfig.read_text()
    return manifest(
        "v1",
        "Secret",
        "provider-local",
        namespace="garden-local",
        stringData={"kubeconfig": kubeconfig},
    )


def has_succeeded(obj: JsonObject) -> bool:
    """Return whether the last operation of an extension resource succeeded."""
    return map_at(obj, "status", "lastOperation").get("state") == "Succeeded"
