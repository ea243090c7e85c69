"""Access of pods on a seed to the API server of a Shoot or of a virtual cluster.

The kubeconfig is shared by all pods of the cluster, and refers to a file with a token. The resource
manager writes the token of each component into a Secret that asks for it.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests.objects import KUBE_SYSTEM, manifest
from pergola.manifests.volumes import mount, projected, secret_files

KUBECONFIG_DIRECTORY: Final = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
KUBECONFIG_PATH: Final = f"{KUBECONFIG_DIRECTORY}/kubeconfig"
"""The path of the kubeconfig in pods; the token that it refers to is in the same directory."""

_ACCOUNT: Final = "serviceaccount.resources.gardener.cloud"
_VOLUME: Final = "kubeconfig"
_READABLE: Final = 0o644


def access_secret_name(component: str) -> str:
    """Return the name of the Secret with the token of a component."""
    return f"shoot-access-{component}"


def access_secret(component: str, namespace: str, *, expiration: str = "") -> JsonObject:
    """Return the Secret into which the resource manager writes the token of a component.

    It has no data, so that applying it keeps the token.

    Args:
        component: also the name of its ServiceAccount in the target's namespace `kube-system`.
        expiration: the lifetime of tokens, such as `24h`; empty for the default.
    """
    return manifest(
        "v1",
        "Secret",
        access_secret_name(component),
        namespace=namespace,
        labels=requests_token(),
        annotations=token_of(component, expiration=expiration),
        type="Opaque",
    )


def requests_token() -> dict[str, str]:
    """Return the labels of Secrets for which the target's resource manager requests tokens."""
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


def kubeconfig_volume(kubeconfig: str, component: str, *, name: str = _VOLUME) -> JsonObject:
    """Return the volume with the shared kubeconfig and the token of a component.

    Args:
        kubeconfig: the Secret with the kubeconfig.
        name: of the volume.
    """
    return projected(
        name,
        secret_files(kubeconfig, {"kubeconfig": "kubeconfig"}, optional=False),
        secret_files(access_secret_name(component), {"token": "token"}, optional=False),
        mode=_READABLE,
    )


def kubeconfig_mount(name: str = _VOLUME) -> JsonObject:
    """Return the mount of that volume; the kubeconfig is at `KUBECONFIG_PATH`."""
    return mount(name, KUBECONFIG_DIRECTORY, readOnly=True)
