"""Kinds and names for gardenlets; they are the original's, and gardenlet itself uses them later."""

from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, map_at

GARDENLET: Final = GroupVersionKind("seedmanagement.gardener.cloud", "v1alpha1", "Gardenlet")

REGISTERED: Final = "SeedRegistered"
"""The type of the condition of a Gardenlet."""
TARGET: Final = "operator.gardener.cloud/gardenlet-target"
"""The annotation of a Gardenlet with the identity of the cluster that it was deployed into."""

PROGRAM: Final = "gardenlet"
"""The name of the release, the Deployment and the image."""
CONFIG_VOLUME: Final = "gardenlet-config"
CONFIG_FILE: Final = "config.yaml"
KUBECONFIG: Final = "gardenlet-kubeconfig"
"""The Secret that gardenlet writes once the virtual cluster has accepted it."""
BOOTSTRAP_KUBECONFIG: Final = "gardenlet-kubeconfig-bootstrap"


def kubeconfig_secret(gardenlet: JsonObject) -> str:
    """Return the Secret with the kubeconfig of the target; empty for the runtime cluster."""
    return str(map_at(gardenlet, "spec", "kubeconfigSecretRef").get("name") or "")


def chart_of(gardenlet: JsonObject) -> JsonObject:
    """Return the `ociRepository` of gardenlet's chart; empty without one."""
    return map_at(gardenlet, "spec", "deployment", "helm", "ociRepository")
