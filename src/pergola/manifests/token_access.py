"""Access of pods to the API server with a token that expires."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests.volumes import mount, projected

MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""The directory where client libraries look for token, CA certificate and namespace."""

_VOLUME: Final = "kube-api-access-gardener"
_SECONDS: Final = 12 * 60 * 60


def token_volume() -> JsonObject:
    """Return the volume for a pod that sets `automountServiceAccountToken: false`."""
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return projected(
        _VOLUME,
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _SECONDS}},
        {"configMap": authority},
        {"downwardAPI": {"items": [namespace]}},
    )


def token_mount() -> JsonObject:
    """Return the mount of that volume."""
    return mount(_VOLUME, MOUNT_PATH, readOnly=True)
