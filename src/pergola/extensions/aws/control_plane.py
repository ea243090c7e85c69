"""What a cluster's control plane has to know of its network in AWS (spec 30 §7.2 to §7.5).

All of it follows from `InfrastructureStatus`: a network that is brought and one that was created
look the same from here.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.extensions.aws.control_plane_config import ControlPlaneConfig
from pergola.extensions.aws.status import INTERNAL, NODES, PUBLIC
from pergola.extensions.errors import Code, ExtensionError

CONFIG_MAP: Final = "cloud-provider-config"
KEY: Final = "cloudprovider.conf"
NO_SUBNET: Final = (
    "could not determine subnet from infrastructureProviderStatus: it has none for public or "
    "internal load balancers, and none for nodes; reconcile the Infrastructure first"
)
NO_VPC: Final = (
    "could not determine VPC from infrastructureProviderStatus; reconcile the Infrastructure first"
)
_FAMILIES: Final = ("IPv4", "IPv6")


class Placed(NamedTuple):
    """A subnet and the availability zone it is in."""

    id: str
    zone: str


def cloud_subnet(status: JsonObject) -> Placed:
    """The subnet that the cloud controller manager is given: it runs outside of EC2.

    The first for public load balancers, else for internal ones, else for nodes.

    Args:
        status: an InfrastructureStatus.

    Raises:
        ExtensionError: there is none at all.
    """
    for purpose in (PUBLIC, INTERNAL, NODES):
        for subnet in _subnets(status, purpose):
            return Placed(str(subnet["id"]), str(subnet.get("zone") or ""))
    raise ExtensionError(NO_SUBNET, Code.CONFIGURATION_PROBLEM)


def places_load_balancers(status: JsonObject) -> bool:
    """Whether there is a subnet for load balancers, so that Services of that type get one."""
    return any(_subnets(status, PUBLIC)) or any(_subnets(status, INTERNAL))


def cloud_controller_arguments(status: JsonObject) -> list[str]:
    """Arguments of the cloud controller manager that depend on the network.

    Routes to pods are never its business; without subnets for load balancers it leaves Services
    alone, and looks after nodes all the same.
    """
    controllers = "*" if places_load_balancers(status) else "*,-service"
    return ["--configure-cloud-routes=false", f"--controllers={controllers}"]


def route_controller_replicas(
    config: ControlPlaneConfig | None, families: Iterable[str], *, awake: int = 1
) -> int:
    """The replicas of the controller that writes routes to pods into route tables.

    None with an overlay, and none for IPv6 alone.

    Args:
        awake: how many there are if it is needed; 0 while the Shoot sleeps.
    """
    wanted = config is not None and config.uses_route_controller
    return awake if wanted and "IPv4" in families else 0


def cloud_provider_config(status: JsonObject, technical_id: str, families: Iterable[str]) -> str:
    """The text of `cloudprovider.conf`.

    Args:
        status: an InfrastructureStatus.
        technical_id: the cluster's name in tags.
        families: the Shoot's IP families; IPv4 if there are none.

    Raises:
        ExtensionError: the status names no VPC, or no subnet.
    """
    vpc = map_at(status, "vpc").get("id")
    if not vpc:
        raise ExtensionError(NO_VPC, Code.CONFIGURATION_PROBLEM)
    subnet = cloud_subnet(status)
    known = set(families) or {"IPv4"}
    lines = [
        "[Global]",
        f'VPC="{vpc}"',
        f'SubnetID="{subnet.id}"',
        "DisableSecurityGroupIngress=true",
        f'KubernetesClusterTag="{technical_id}"',
        f'KubernetesClusterID="{technical_id}"',
        f'Zone="{subnet.zone}"',
        *(f'NodeIPFamilies="{family.lower()}"' for family in _FAMILIES if family in known),
    ]
    return "".join(f"{line}\n" for line in lines)


def cloud_provider_config_map(
    status: JsonObject, technical_id: str, families: Iterable[str]
) -> JsonObject:
    """The ConfigMap with `cloudprovider.conf`, in the cluster's namespace on the seed.

    Raises:
        ExtensionError: the status names no VPC, or no subnet.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": technical_id},
        "data": {KEY: cloud_provider_config(status, technical_id, families)},
    }


def _subnets(status: JsonObject, purpose: str) -> list[JsonObject]:
    return [
        subnet
        for subnet in maps_at(status, "vpc", "subnets")
        if subnet.get("purpose") == purpose and subnet.get("id")
    ]
