"""`cloudprovider.conf` and the arguments of the cloud controller manager (spec 30 §7.5)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at
from pergola.providers.aws.control_plane.subnets import (
    cloud_subnet,
    places_load_balancers,
    problem,
    subnets_for,
)
from pergola.providers.aws.desired import ROLE_INTERNAL, ROLE_PUBLIC
from pergola.providers.aws.status import INTERNAL, PUBLIC

CONFIG_MAP: Final = "cloud-provider-config"
KEY: Final = "cloudprovider.conf"
NO_VPC: Final = (
    "could not determine VPC from infrastructureProviderStatus; reconcile the Infrastructure first"
)
IPV4: Final = "IPv4"
_FAMILIES: Final = (IPV4, "IPv6")


class Arguments(NamedTuple):
    """Arguments of the cloud controller manager, and why its Service controller is on or off."""

    arguments: list[str]
    reason: str


def cloud_controller_arguments(status: JsonObject) -> list[str]:
    """Return the arguments of the cloud controller manager that depend on the network.

    It never handles routes to pods; without subnets for load balancers, it ignores Services, but
    still handles nodes.
    """
    without_services = [] if places_load_balancers(status) else ["--controllers=*,-service"]
    return ["--configure-cloud-routes=false", *without_services]


def cloud_provider_config(status: JsonObject, technical_id: str, families: Iterable[str]) -> str:
    """Return the text of `cloudprovider.conf`.

    Args:
        status: an InfrastructureStatus.
        technical_id: the cluster's name in tags.
        families: the Shoot's IP families; IPv4 if there are none.

    Raises:
        ExtensionError: the status names no VPC, or no subnet.
    """
    vpc = map_at(status, "vpc").get("id")
    if not vpc:
        raise problem(NO_VPC)
    subnet = cloud_subnet(status)
    known = known_families(families)
    lines = [
        "[Global]",
        f'VPC="{vpc}"',
        f'SubnetID="{subnet.id}"',
        "DisableSecurityGroupIngress=true",
        f'KubernetesClusterTag="{technical_id}"',
        f'KubernetesClusterID="{technical_id}"',
        f'Zone="{subnet.zone}"',
        # A line of the original: without it, pods would restart when it is replaced.
        "# https://github.com/kubernetes/cloud-provider-aws/issues/638",
        *(f'NodeIPFamilies="{family.lower()}"' for family in _FAMILIES if family in known),
    ]
    return "".join(f"{line}\n" for line in lines)


def cloud_provider_config_map(
    status: JsonObject, technical_id: str, families: Iterable[str]
) -> JsonObject:
    """Return the ConfigMap with `cloudprovider.conf`, in the cluster's namespace on the seed.

    Raises:
        ExtensionError: the status contains no VPC, or no subnet.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": technical_id},
        "data": {KEY: cloud_provider_config(status, technical_id, families)},
    }


def cloud_controller(status: JsonObject, technical_id: str) -> Arguments:
    """Return the arguments of the cloud controller manager, and the reason."""
    found = [
        f"{subnet['id']} ({purpose})"
        for purpose in (PUBLIC, INTERNAL)
        for subnet in subnets_for(status, purpose)
    ]
    reason = (
        f"subnets for load balancers: {', '.join(found)}"
        if found
        else "no subnet for load balancers: the status has none that is public or internal, "
        "Services of type LoadBalancer stay pending; name subnets in the configuration, or tag "
        f"them with kubernetes.io/cluster/{technical_id} and {ROLE_PUBLIC}=1 or {ROLE_INTERNAL}=1"
    )
    return Arguments(cloud_controller_arguments(status), reason)


def known_families(families: Iterable[str]) -> set[str]:
    """Return the Shoot's IP families; IPv4 if there are none."""
    return set(families) or {IPV4}
