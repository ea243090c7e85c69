"""The control plane's configuration for a network in AWS (spec 30 §7.2 to §7.5).

subnets            which subnets the status has for a purpose
cloud_provider     `cloudprovider.conf`, and arguments of the cloud controller manager
route_controller   whether pod routes are written, and why
values             all of it together, from an Infrastructure and its Shoot

All of it follows from `InfrastructureStatus`, in which user-provided and managed networks look the
same.
"""

from pergola.providers.aws.control_plane.cloud_provider import (
    CONFIG_MAP,
    KEY,
    NO_VPC,
    Arguments,
    cloud_controller_arguments,
    cloud_provider_config,
    cloud_provider_config_map,
)
from pergola.providers.aws.control_plane.route_controller import (
    Replicas,
    route_controller,
    route_controller_replicas,
)
from pergola.providers.aws.control_plane.subnets import (
    NO_SUBNET,
    Placed,
    cloud_subnet,
    places_load_balancers,
)
from pergola.providers.aws.control_plane.values import Given, given

__all__ = [
    "CONFIG_MAP",
    "KEY",
    "NO_SUBNET",
    "NO_VPC",
    "Arguments",
    "Given",
    "Placed",
    "Replicas",
    "cloud_controller_arguments",
    "cloud_provider_config",
    "cloud_provider_config_map",
    "cloud_subnet",
    "given",
    "places_load_balancers",
    "route_controller",
    "route_controller_replicas",
]
