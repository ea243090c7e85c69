"""Facts about NAT gateways, and the gateways of a zone."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.kinds import NAT_GATEWAY
from pergola.providers.aws.resources.ours import Ours, in_vpc
from pergola.providers.aws.resources.removal import is_ours
from pergola.providers.aws.resources.step import Work

AVAILABLE: Final = "available"
DELETED: Final = "deleted"
FAILED: Final = "failed"
USABLE: Final = frozenset({"pending", AVAILABLE})


def allocation_of(gateway: JsonObject) -> str | None:
    """Return the allocation id of a NAT gateway's primary elastic IP."""
    found = (each.get("AllocationId") for each in _addresses(gateway))
    return next((each for each in found if each), None)


def public_ips_of(gateway: JsonObject) -> list[str]:
    """Return the source addresses of requests through a NAT gateway, once it is available.

    Users may associate secondary ones, for more connections.
    """
    working = (each for each in _addresses(gateway) if each.get("Status") != FAILED)
    return [each["PublicIp"] for each in working if each.get("PublicIp")]


def _addresses(gateway: JsonObject) -> list[JsonObject]:
    """Return the addresses of a NAT gateway; the primary one first, wherever AWS lists it."""
    found = gateway.get("NatGatewayAddresses") or ()
    return sorted(found, key=lambda each: each.get("IsPrimary") is False)


def of_zone(zone: str) -> Ours:
    """Return the NAT gateway of a zone."""
    key = keys.zone_key(zone, keys.NAT_GATEWAY)
    return Ours(kind=NAT_GATEWAY, key=key, suffix="natgw", zone=zone)


def nats_of(work: Work, zone: str) -> list[str]:
    """Return a zone's NAT gateways that are not deleted: by the state, and by its tags."""
    ours = of_zone(zone)
    recorded, names = work.state.get(ours.key), (ours.name(work),)
    return [
        name
        for name, gateway in ours.all(work).items()
        if in_vpc(work, gateway)
        and state_of(gateway) != DELETED
        and (name == recorded or is_ours(work, gateway, names))
    ]


def state_of(gateway: JsonObject) -> str:
    """Return the state of a gateway, such as `pending`."""
    return str(gateway.get("State", ""))
