"""The cluster id in origin annotations (spec 10 §3.3)."""

from typing import Final

from pergola.api.kinds import CONFIG_MAP
from pergola.api.marks import CLUSTER_IDENTITY
from pergola.api.objects import Key, map_at
from pergola.kube.client import Client

FROM_CLUSTER: Final = "<cluster>"
FROM_CLUSTER_OR_NONE: Final = "<default>"
_KEY: Final = Key("kube-system", CLUSTER_IDENTITY)


class IdentityError(Exception):
    """The cluster has no identity, or an unusable one."""


async def cluster_identity(client: Client, configured: str) -> str:
    """Return the id to prefix origins with; empty for none.

    Args:
        client: of the source cluster.
        configured: `controllers.clusterID`: a plain id, `<cluster>`, `<default>` or empty.

    Raises:
        IdentityError: `<cluster>` is configured but ConfigMap kube-system/cluster-identity does not
            contain an id, or the id contains a `:`.
        KubeError: the ConfigMap could not be read.
    """
    identity = configured
    if configured in (FROM_CLUSTER, FROM_CLUSTER_OR_NONE):
        identity = await _read(client)
        if not identity and configured == FROM_CLUSTER:
            raise IdentityError(
                f"controllers.clusterID is {FROM_CLUSTER}, but ConfigMap {_KEY} has no data key "
                f"{CLUSTER_IDENTITY}; create it, or set a plain id"
            )
    if ":" in identity:
        raise IdentityError(f"cluster id {identity!r} must not contain a colon")
    return identity


async def _read(client: Client) -> str:
    config_map = await client.find(CONFIG_MAP, _KEY)
    identity = map_at(config_map or {}, "data").get(CLUSTER_IDENTITY)
    return identity if isinstance(identity, str) else ""
