"""Subnets of an `InfrastructureStatus`, and the one for the cloud controller (§7.5)."""

from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, maps_at
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.status import INTERNAL, NODES, PUBLIC

NO_SUBNET: Final = (
    "could not determine subnet from infrastructureProviderStatus: it has none for public or "
    "internal load balancers, and none for nodes; reconcile the Infrastructure first"
)


class Placed(NamedTuple):
    """A subnet and its availability zone."""

    id: str
    zone: str


def cloud_subnet(status: JsonObject) -> Placed:
    """Return the subnet for the cloud controller manager, which runs outside of EC2.

    This is the first for public load balancers, else for internal ones, else for nodes.

    Args:
        status: an InfrastructureStatus.

    Raises:
        ExtensionError: there is no subnet at all.
    """
    for purpose in (PUBLIC, INTERNAL, NODES):
        for subnet in subnets_for(status, purpose):
            return Placed(str(subnet["id"]), str(subnet.get("zone") or ""))
    raise problem(NO_SUBNET)


def has_subnet(status: JsonObject) -> bool:
    """Return whether `cloud_subnet` finds one."""
    return any(subnets_for(status, purpose) for purpose in (PUBLIC, INTERNAL, NODES))


def places_load_balancers(status: JsonObject) -> bool:
    """Return whether any subnet is for load balancers."""
    return any(subnets_for(status, PUBLIC)) or any(subnets_for(status, INTERNAL))


def problem(text: str) -> ExtensionError:
    """Return an error that the user must fix."""
    return ExtensionError(text, Code.CONFIGURATION_PROBLEM)


def subnets_for(status: JsonObject, purpose: str) -> list[JsonObject]:
    """Return the subnets of an InfrastructureStatus for a purpose, in order."""
    return [
        subnet
        for subnet in maps_at(status, "vpc", "subnets")
        if subnet.get("purpose") == purpose and subnet.get("id")
    ]
