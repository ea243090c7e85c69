"""Facts about NAT gateways, and the gateways of a zone."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.providers.aws import state as keys
from pergola.providers.aws.resources.adoption import in_vpc
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.zone_suffixes import zone_suffix

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


def nats_of(work: Work, zone: str) -> list[str]:
    """Return a zone's NAT gateways that are not deleted: by the state, and by its tags."""
    suffix = work.desired.name(suffix_of(work, zone))
    recorded = work.state.get(keys.zone_key(zone, keys.NAT_GATEWAY))
    accept = in_vpc(work)
    return [
        name
        for name, gateway in work.snapshot.nat_gateways.items()
        if accept(gateway)
        and state_of(gateway) != DELETED
        and (name == recorded or _is_named(work, gateway, suffix))
    ]


def _is_named(work: Work, gateway: JsonObject, name: str) -> bool:
    given = tags_of(gateway)
    return work.desired.owns(given) and given.get("Name") == name


def suffix_of(work: Work, zone: str) -> str:
    """Return the suffix of the name of a zone's gateway."""
    return f"natgw-{zone_suffix(work, zone)}"


def state_of(gateway: JsonObject) -> str:
    """Return the state of a gateway, such as `pending`."""
    return str(gateway.get("State", ""))
