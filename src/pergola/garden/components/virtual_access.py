"""Access of components in the runtime cluster to the virtual one (spec 20 §12.3, §13).

All components share one kubeconfig without credentials. The resource manager of the virtual cluster
writes a token for each component into its own Secret, and pods mount both side by side.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject, Key, annotations_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.components import authorities, task_names
from pergola.garden.components.component import Clusters, Component, Rendered
from pergola.garden.components.conventions import to_service
from pergola.garden.components.removal import removable
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import shoot_access
from pergola.manifests.shoot_access import KUBECONFIG_DIRECTORY
from pergola.pki import TokenFile, kubeconfig
from pergola.secrets_manager import Kubeconfig, Options, Rotate

KUBECONFIG: Final = "generic-token-kubeconfig"
"""The credential with the kubeconfig that all components share."""
GENERIC_NAME: Final = "generic-token-kubeconfig.secret.gardener.cloud/name"
"""The annotation of a Garden that names the Secret with that kubeconfig."""
API_SERVER: Final = "virtual-garden-kube-apiserver"
"""The Service of the virtual cluster's API server."""
TO_VIRTUAL_API_SERVER: Final = to_service(API_SERVER, 443)
"""The label of pods that connect to it."""


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the kubeconfig that all components share."""
    yield generic_kubeconfig(landscape)


def generic_kubeconfig(landscape: Landscape) -> Credential:
    """Return the kubeconfig; the previous one stays until external components have switched."""
    authority = landscape.credentials.bundle(authorities.CLUSTER).data["bundle.crt"]
    token = TokenFile(f"{KUBECONFIG_DIRECTORY}/token")
    content = kubeconfig(NAMESPACE, f"https://{_host(landscape)}", authority, token)
    return Credential(Kubeconfig.of(KUBECONFIG, content), Options(rotate=Rotate.KEEP_OLD))


def _host(landscape: Landscape) -> str:
    terminates = landscape.feature_gates.get("IstioTLSTermination", False)
    return f"api.{landscape.domains[0]}" if terminates else API_SERVER


def access_secret(name: str, *, expiration: str = "") -> JsonObject:
    """Return the Secret into which the resource manager writes the token of a component.

    It is an object of the runtime cluster.

    Args:
        name: The name of the component and of its ServiceAccount in the virtual cluster.
        expiration: The lifetime of tokens, such as `24h`; empty for the default.
    """
    return shoot_access.access_secret(name, NAMESPACE, expiration=expiration)


def kubeconfig_volume(landscape: Landscape, name: str) -> JsonObject:
    """Return the volume with the shared kubeconfig and the token of a component."""
    return shoot_access.kubeconfig_volume(landscape.credentials.name(KUBECONFIG), name)


def _render(landscape: Landscape) -> Rendered:
    del landscape
    return Rendered()


async def _publish(landscape: Landscape, clusters: Clusters) -> None:
    """Name the Secret with the kubeconfig in an annotation of the Garden."""
    garden, name = (
        Key.of({"metadata": landscape.garden.metadata}),
        landscape.credentials.name(KUBECONFIG),
    )
    live = await clusters.client.get(GARDEN, garden, metadata_only=True)
    if annotations_of(live).get(GENERIC_NAME) != name:
        patch = {"metadata": {"annotations": {GENERIC_NAME: name}}}
        await clusters.client.patch(GARDEN, garden, patch)


GENERIC_KUBECONFIG: Final = Component(
    name=KUBECONFIG,
    deploy=task_names.GENERIC_KUBECONFIG,
    credentials=credentials,
    render=_render,
    finish=_publish,
    waits=False,
    removable=removable(),
)
