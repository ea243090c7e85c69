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
from pergola.manifests import KUBE_SYSTEM, manifest, mount, projected, secret_files
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

KUBECONFIG_DIRECTORY: Final = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
KUBECONFIG_PATH: Final = f"{KUBECONFIG_DIRECTORY}/kubeconfig"
"""The path of the kubeconfig in pods; the token that it refers to is in the same directory."""

_ACCOUNT: Final = "serviceaccount.resources.gardener.cloud"
_VOLUME: Final = "kubeconfig"
_READABLE: Final = 0o644


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


def access_secret_name(name: str) -> str:
    """Return the name of the Secret with the token of a component."""
    return f"shoot-access-{name}"


def access_secret(name: str, *, expiration: str = "") -> JsonObject:
    """Return the Secret into which the resource manager writes the token of a component.

    It is an object of the runtime cluster, without data, so that applying it keeps the token.

    Args:
        name: The name of the component and of its ServiceAccount in the virtual cluster.
        expiration: The lifetime of tokens, such as `24h`; empty for the default.
    """
    return manifest(
        "v1",
        "Secret",
        access_secret_name(name),
        namespace=NAMESPACE,
        labels=requests_token(),
        annotations=token_of(name, expiration=expiration),
        type="Opaque",
    )


def requests_token() -> dict[str, str]:
    """Return the labels of Secrets for which the virtual resource manager requests tokens."""
    return {
        "resources.gardener.cloud/purpose": "token-requestor",
        "resources.gardener.cloud/class": "shoot",
    }


def token_of(account: str, *, expiration: str = "") -> dict[str, str]:
    """Return the annotations that name the ServiceAccount whose token a Secret gets."""
    annotations = {
        f"{_ACCOUNT}/name": account,
        f"{_ACCOUNT}/namespace": KUBE_SYSTEM,
    }
    if expiration:
        annotations[f"{_ACCOUNT}/token-expiration-duration"] = expiration
    return annotations


def kubeconfig_volume(landscape: Landscape, name: str) -> JsonObject:
    """Return the volume with the shared kubeconfig and the token of a component."""
    return projected(
        _VOLUME,
        secret_files(landscape.credentials.name(KUBECONFIG), {"kubeconfig": "kubeconfig"}),
        secret_files(access_secret_name(name), {"token": "token"}),
        mode=_READABLE,
    )


def kubeconfig_mount() -> JsonObject:
    """Return the mount of that volume; the kubeconfig is at `KUBECONFIG_PATH`."""
    return mount(_VOLUME, KUBECONFIG_DIRECTORY, readOnly=True)


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
