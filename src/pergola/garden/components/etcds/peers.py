"""The rollout of a new authority to the members of an etcd (spec 20 §15.1).

Members restart one by one, and present their certificates to each other. So all of them must trust
the new authority before the first one presents a certificate that it signed.
"""

from typing import Final

from pergola.api.objects import JsonObject, Key, map_at
from pergola.garden.components import authorities
from pergola.garden.components.component import Clusters, Rendered, Stage
from pergola.garden.components.etcds.access import (
    ROLES,
    credentials,
    name,
    peer_certificate,
    peer_tls,
)
from pergola.garden.landscape import NAMESPACE, Landscape, etcd_objects
from pergola.manifests import manifest
from pergola.runtime.logging import get_logger

log = get_logger("rotation")

_LIMIT: Final = 300.0
_AUTHORITY: Final = "tlsCASecretRef"


async def learn(landscape: Landscape, clusters: Clusters) -> Landscape | None:
    """Return None unless the landscape has several members, and an old authority of theirs."""
    del clusters
    known = landscape.credentials
    is_rotating = landscape.is_highly_available and known.old(authorities.ETCD_PEER) is not None
    return landscape if is_rotating else None


async def roll_out(landscape: Landscape, clusters: Clusters) -> None:
    """Let the members that present their former certificates trust both authorities.

    Raises:
        NotReady: The members of an etcd are not updated in time.
        KubeError: The API server refused, or did not answer.
    """
    changing = [role for role in ROLES if await _is_changing(landscape, clusters, role)]
    etcds = (
        manifest("druid.gardener.cloud/v1alpha1", "Etcd", name(each), namespace=NAMESPACE)
        for each in changing
    )
    await clusters.wait_ready(Rendered(direct=tuple(etcds)), _LIMIT)


async def _is_changing(landscape: Landscape, clusters: Clusters, role: str) -> bool:
    """Return whether the certificate of an etcd will change; publish the new authority then."""
    key = Key(NAMESPACE, name(role))
    live = map_at(
        await clusters.client.find(etcd_objects.ETCD, key) or {}, "spec", "etcd", "peerUrlTls"
    )
    certificate = map_at(live, "serverTLSSecretRef").get("name")
    if not live or certificate == landscape.credentials.name(peer_certificate(role)):
        return False
    desired = peer_tls(landscape, role)[_AUTHORITY]
    if live.get(_AUTHORITY) != desired:
        change: JsonObject = {"spec": {"etcd": {"peerUrlTls": {_AUTHORITY: desired}}}}
        patch = etcd_objects.requested(change, clusters.clock.now())
        await clusters.client.patch(etcd_objects.ETCD, key, patch)
        log.info("new authority of members published", etcd=key.name)
    return True


TRUST: Final = Stage(
    learn=learn, credentials=credentials, render=lambda _: Rendered(), finish=roll_out
)
"""The stage in which all members learn to trust a new authority."""
