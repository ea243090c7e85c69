"""An API server, and the parts that make up its pod."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1.gardener import GardenerApiServer
from pergola.api.operator_v1alpha1.kube_api_server import KubeApiServer
from pergola.manifests import config_map_volume, mount

Settings: TypeAlias = KubeApiServer | GardenerApiServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServer:
    """One of the two API servers of a Garden.

    Attributes:
        name: `kube-apiserver` or `gardener-apiserver`; its Secrets and ConfigMaps start with it.
        deployment: The name of its Deployment.
        audit_policy: The name of the ConfigMap with its audit policy, without the checksum.
        settings: Its section of the Garden's spec.
        always_encrypted: The resources that it encrypts in addition to those in its settings.
    """

    name: str
    deployment: str
    audit_policy: str
    settings: Settings
    always_encrypted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of one concern to an API server's container and pod, and to the cluster.

    Attributes:
        objects: The immutable Secrets and ConfigMaps that the volumes refer to.
    """

    args: tuple[str, ...] = ()
    mounts: tuple[JsonObject, ...] = ()
    volumes: tuple[JsonObject, ...] = ()
    objects: tuple[JsonObject, ...] = ()

    def __add__(self, other: "Part") -> "Part":
        """Return the concatenation of both parts."""
        return Part(
            self.args + other.args,
            self.mounts + other.mounts,
            self.volumes + other.volumes,
            self.objects + other.objects,
        )


def mounted_secret(
    volume: str, path: str, secret: str, *, mode: int | None = None, read_only: bool = False
) -> Part:
    """Return the volume and mount that expose a Secret as files in a directory."""
    source: JsonObject = {"secretName": secret}
    if mode is not None:
        source["defaultMode"] = mode
    options = {"readOnly": True} if read_only else {}
    return Part(
        mounts=(mount(volume, path, **options),), volumes=({"name": volume, "secret": source},)
    )


def mounted_config_map(volume: str, path: str, config_map: str, *, read_only: bool = False) -> Part:
    """Return the volume and mount that expose a ConfigMap as files in a directory."""
    options = {"readOnly": True} if read_only else {}
    return Part(
        mounts=(mount(volume, path, **options),), volumes=(config_map_volume(volume, config_map),)
    )


def feature_gates(gates: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the flag that sets feature gates, if there are any."""
    pairs = [f"{name}={'true' if on else 'false'}" for name, on in sorted(gates.items())]
    return (f"--feature-gates={','.join(pairs)}",) if pairs else ()
