"""Load balancers of Shoots with IPv6 (spec 31 §8)."""

from collections.abc import Iterator
from typing import Final

from pergola.admission.draft import Draft
from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, maps_at
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.seed import Seed
from pergola.extensions.webhooks.mutation import LeftAlone, Mutate
from pergola.kube.errors import KubeError
from pergola.manifests import KUBE_SYSTEM
from pergola.runtime.logging import get_logger

log = get_logger("aws-webhooks")

_DNS: Final = Key(KUBE_SYSTEM, "kube-dns")
_PREFIX: Final = "service.beta.kubernetes.io/aws-load-balancer-"
_ADDRESSES: Final = f"{_PREFIX}ip-address-type"
_SCHEME: Final = f"{_PREFIX}scheme"
_INTERNAL: Final = f"{_PREFIX}internal"
_DUAL_STACK: Final = {
    _ADDRESSES: "dualstack",
    _SCHEME: "internet-facing",
    f"{_PREFIX}nlb-target-type": "instance",
    f"{_PREFIX}type": "external",
}
_IGNORE: Final = "extensions.gardener.cloud/ignore-load-balancer"
_OLD_NAME: Final = "gardener.cloud/old-load-balancer-name"
_ANNOTATIONS: Final = ("metadata", "annotations")


def dual_stack(seed: Seed, peer: str) -> Mutate:
    """Return the mutator of Services for the Shoot whose API server has an address."""

    async def mutate(draft: Draft, old: JsonObject | None) -> None:
        if not is_load_balancer(draft.object):
            return
        try:
            has_ipv6 = await _has_ipv6(seed, peer)
        except (ExtensionError, KubeError) as error:
            log.warning("a Service is not adapted", peer=peer, error=str(error))
            raise LeftAlone(f"the load balancer may lack IPv6: {error}") from None
        if has_ipv6:
            adapt_service(draft, old)

    return mutate


def is_load_balancer(service: JsonObject) -> bool:
    """Return whether a Service has a load balancer."""
    return map_at(service, "spec").get("type") == "LoadBalancer"


def adapt_service(draft: Draft, old: JsonObject | None) -> None:
    """Give a Service a load balancer with both IP families.

    An existing Service would lose its address, so it is first marked to be ignored; its owner takes
    the mark off. Internal load balancers stay as they are.
    """
    annotations = annotations_of(draft.object)
    is_new = annotations.get(_ADDRESSES) == _DUAL_STACK[_ADDRESSES]
    is_kept = annotations.get(_IGNORE) == "true"
    if old is not None and not (is_kept or is_new or annotations_of(old).get(_IGNORE) == "true"):
        because = "its load balancer keeps its address until the owner takes this off"
        draft.set((*_ANNOTATIONS, _IGNORE), "true", because)
        return
    if is_kept or annotations.get(_SCHEME) == "internal" or annotations.get(_INTERNAL) == "true":
        return
    for name in _old_names(draft.object):
        draft.set((*_ANNOTATIONS, _OLD_NAME), name, "the old load balancer is deleted by its owner")
    for key, value in _DUAL_STACK.items():
        draft.set((*_ANNOTATIONS, key), value, "Services of the Shoot have IPv6 addresses")


def _old_names(service: JsonObject) -> Iterator[str]:
    """Yield the host name of the load balancer that a Service has, if any."""
    for address in maps_at(service, "status", "loadBalancer", "ingress")[:1]:
        if isinstance(name := address.get("hostname"), str) and name:
            yield name


async def _has_ipv6(seed: Seed, peer: str) -> bool:
    async with seed.caller(peer) as shoot:
        if shoot is None:
            return False
        dns = await shoot.get(SERVICE, _DNS)
    return "IPv6" in (map_at(dns, "spec").get("ipFamilies") or ())
