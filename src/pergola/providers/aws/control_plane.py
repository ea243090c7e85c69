"""What a cluster's control plane has to know of its network in AWS (spec 30 §7.2 to §7.5).

All of it follows from `InfrastructureStatus`: a network that is brought and one that was created
look the same from here.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at, namespace_of
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.provider_config import read_leniently
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG, ControlPlaneConfig
from pergola.providers.aws.overlay import has_overlay
from pergola.providers.aws.status import INFRASTRUCTURE_STATUS, INTERNAL, NODES, PUBLIC
from pergola.providers.aws.wanted import ROLE_INTERNAL, ROLE_PUBLIC

CONFIG_MAP: Final = "cloud-provider-config"
KEY: Final = "cloudprovider.conf"
NO_SUBNET: Final = (
    "could not determine subnet from infrastructureProviderStatus: it has none for public or "
    "internal load balancers, and none for nodes; reconcile the Infrastructure first"
)
NO_VPC: Final = (
    "could not determine VPC from infrastructureProviderStatus; reconcile the Infrastructure first"
)
_IPV4: Final = "IPv4"
_FAMILIES: Final = (_IPV4, "IPv6")
_CONFIG: Final = "spec.provider.controlPlaneConfig"
_SWITCH: Final = f"{_CONFIG}.cloudControllerManager.useCustomRouteController"


class Arguments(NamedTuple):
    """Arguments of the cloud controller manager, and why its Service controller is on or off."""

    arguments: list[str]
    reason: str


class Replicas(NamedTuple):
    """How many replicas of a controller there are, and why."""

    replicas: int
    reason: str


class Given(NamedTuple):
    """All that a control plane has to be given.

    Attributes:
        config_map: with the cloud provider's configuration, ready to be applied.
        cloud_controller: the manager that looks after nodes and Services.
        route_controller: the one that writes routes to pods into route tables.
    """

    config_map: JsonObject
    cloud_controller: Arguments
    route_controller: Replicas


class Placed(NamedTuple):
    """A subnet and the availability zone it is in."""

    id: str
    zone: str


def given(infrastructure: JsonObject, shoot: Shoot) -> Given:
    """What the control plane of a cluster has to be given, once there is a network.

    Args:
        shoot: for IP families, overlay and `controlPlaneConfig`; an empty one is as good as a
            Shoot with IPv4 and an overlay.

    Raises:
        ExtensionError: the Infrastructure has no status yet, or one without VPC or subnets; or the
            Shoot's overlay is neither on nor off.
        Malformed: the Shoot's `controlPlaneConfig` has a value of a wrong type.
    """
    key, technical_id = Key.of(infrastructure), namespace_of(infrastructure)
    if not technical_id:
        raise _problem(f"Infrastructure {key}: metadata.namespace is missing: it names the cluster")
    status = _provider_status(infrastructure)
    try:
        config_map = cloud_provider_config_map(status, technical_id, shoot.ip_families)
    except ExtensionError as error:
        raise ExtensionError(f"Infrastructure {key}: {error}", *error.codes) from None
    return Given(config_map, _cloud_controller(status, technical_id), route_controller(shoot))


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
    raise _problem(NO_SUBNET)


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
        families: the Shoot's IP families; IPv4 if there are none.
        awake: how many there are if it is needed; 0 while the Shoot sleeps.
    """
    wanted = config is not None and config.uses_route_controller
    return awake if wanted and _IPV4 in _known(families) else 0


def route_controller(shoot: Shoot) -> Replicas:
    """The replicas of the controller of routes to pods that a Shoot needs, and why.

    Raises:
        ExtensionError: the Shoot's overlay is neither on nor off.
        Malformed: its `controlPlaneConfig` has a value of a wrong type.
    """
    config = _control_plane_config(shoot)
    replicas = route_controller_replicas(config, shoot.ip_families, awake=shoot.replicas(1))
    return Replicas(replicas, _why_routes(shoot, config))


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
        raise _problem(NO_VPC)
    subnet = cloud_subnet(status)
    known = _known(families)
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


def _provider_status(infrastructure: JsonObject) -> JsonObject:
    where = f"Infrastructure {Key.of(infrastructure)}"
    status = map_at(infrastructure, "status", "providerStatus")
    if not status:
        raise _problem(
            f"{where} has no status.providerStatus yet; wait until it is reconciled, and take it "
            "with its status"
        )
    found = GroupVersionKind.of(status)
    if found.group_kind != INFRASTRUCTURE_STATUS.group_kind:
        raise _problem(
            f"{where}: status.providerStatus is no {INFRASTRUCTURE_STATUS.group_kind}; only an "
            "Infrastructure of type aws has one"
        )
    return status


def _cloud_controller(status: JsonObject, technical_id: str) -> Arguments:
    found = [
        f"{subnet['id']} ({purpose})"
        for purpose in (PUBLIC, INTERNAL)
        for subnet in _subnets(status, purpose)
    ]
    reason = (
        f"subnets for load balancers: {', '.join(found)}"
        if found
        else "no subnet for load balancers: the status has none that is public or internal, "
        "Services of type LoadBalancer stay pending; name subnets in the configuration, or tag "
        f"them with kubernetes.io/cluster/{technical_id} and {ROLE_PUBLIC}=1 or {ROLE_INTERNAL}=1"
    )
    return Arguments(cloud_controller_arguments(status), reason)


def _why_routes(shoot: Shoot, config: ControlPlaneConfig | None) -> str:
    """The switch decides; a switch that contradicts the overlay is told."""
    has_switch = config is not None and config.uses_route_controller
    overlay = has_overlay(shoot.raw)
    if _IPV4 not in _known(shoot.ip_families):
        return "the Shoot has only IPv6, whose pods need no routes"
    if not has_switch and overlay:
        return "pods talk through an overlay, and need no routes"
    if not has_switch:
        return f"nobody writes routes to pods, though there is no overlay: set {_SWITCH} to true"
    if shoot.hibernation_enabled:
        return "the Shoot sleeps"
    if overlay:
        return f"{_SWITCH} is true, though pods talk through an overlay and need no routes"
    return "there is no overlay: it writes a route for each node into the tagged route tables"


def _control_plane_config(shoot: Shoot) -> ControlPlaneConfig | None:
    value = map_at(shoot.raw, "spec", "provider").get("controlPlaneConfig")
    if value is None:
        return None
    return read_leniently(ControlPlaneConfig, value, CONTROL_PLANE_CONFIG, path=_CONFIG)


def _known(families: Iterable[str]) -> set[str]:
    return set(families) or {_IPV4}


def _problem(text: str) -> ExtensionError:
    return ExtensionError(text, Code.CONFIGURATION_PROBLEM)


def _subnets(status: JsonObject, purpose: str) -> list[JsonObject]:
    return [
        subnet
        for subnet in maps_at(status, "vpc", "subnets")
        if subnet.get("purpose") == purpose and subnet.get("id")
    ]
