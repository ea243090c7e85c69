"""The network interfaces of machines (spec 31 §4.1)."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.extensions.workers import Pool
from pergola.providers.aws.worker_config import LARGEST, NetworkInterface, WorkerConfig
from pergola.providers.aws.workers.problems import unusable

_MOST: Final = 1000
"""More than any machine in AWS has."""
_PATH: Final = "providerConfig.networkInterfaces"
_IPV6: Final = "IPv6"


def network_interfaces(
    pool: Pool[WorkerConfig], subnet: str, group: str, families: Sequence[str]
) -> list[JsonObject]:
    """Return the interfaces of a pool, or the one in the subnet of nodes.

    Args:
        families: the IP families of the Shoot.

    Raises:
        Problem: there are too many, an index is too large, or there is none for IPv6.
    """
    own = pool.config.network_interfaces
    if not own:
        found = [_network(subnet, group)]
    else:
        _check(own)
        found = [_interface(each, card, subnet, group) for each in own for card in _cards(each)]
    if _IPV6 in families:
        if not found:
            raise unusable(_PATH, len(own), "the ranges are empty, so nothing has an IPv6 address")
        found[0] |= {"ipv6AddressCount": 1, "ipv6PrefixCount": 1}
    return found


def _check(interfaces: Sequence[NetworkInterface]) -> None:
    total = 0
    for index, each in enumerate(interfaces):
        cards, path = _cards(each), f"{_PATH}[{index}]"
        # A range's own length may be too large for Python to say.
        total += max(0, cards.stop - cards.start)
        if total > _MOST:
            raise unusable(path, total, f"machines have at most {_MOST} network interfaces")
        for card in (*cards[:1], *cards[-1:]):
            _check_index(card, f"{path}.networkCardIndex")
        _check_index(each.device_index, f"{path}.deviceIndex")


def _check_index(value: int, path: str) -> None:
    if not 0 <= value <= LARGEST:
        raise unusable(path, value, f"must be between 0 and {LARGEST}")


def _cards(interface: NetworkInterface) -> range:
    if (cards := interface.network_card_index_range) is not None:
        return range(cards.first, cards.last + 1)
    card = interface.network_card_index or 0
    return range(card, card + 1)


def _interface(interface: NetworkInterface, card: int, subnet: str, group: str) -> JsonObject:
    own = interface.subnet_id
    found = _network(subnet if own is None else own, group)
    if interface.description is not None:
        found["description"] = interface.description
    return found | {
        "interfaceType": interface.type or "interface",
        "deviceIndex": interface.device_index,
        "networkCardIndex": card,
        "associatePublicIPAddress": False,
        "deleteOnTermination": True,
    }


def _network(subnet: str, group: str) -> JsonObject:
    return {"securityGroupIDs": [group], **({"subnetID": subnet} if subnet else {})}
