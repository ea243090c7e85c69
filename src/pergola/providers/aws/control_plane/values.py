"""All values for the control plane of a cluster, from an Infrastructure and its Shoot."""

from typing import NamedTuple

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, namespace_of
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.providers.aws.control_plane.cloud_provider import (
    Arguments,
    cloud_controller,
    cloud_provider_config_map,
)
from pergola.providers.aws.control_plane.route_controller import Replicas, route_controller
from pergola.providers.aws.control_plane.subnets import problem
from pergola.providers.aws.status import INFRASTRUCTURE_STATUS


class Given(NamedTuple):
    """All values for a control plane.

    Attributes:
        config_map: with the cloud provider's configuration, ready to be applied.
        cloud_controller: the arguments of the manager of nodes and Services.
        route_controller: the controller that writes routes to pods into route tables.
    """

    config_map: JsonObject
    cloud_controller: Arguments
    route_controller: Replicas

    def controllers(self) -> list[tuple[str, str]]:
        """Return the controllers that depend on the network, each as a text and the reason."""
        cloud, routes = self.cloud_controller, self.route_controller
        return [
            (f"cloud-controller-manager {' '.join(cloud.arguments)}", cloud.reason),
            (f"aws-custom-route-controller, replicas: {routes.replicas}", routes.reason),
        ]


def given(infrastructure: JsonObject, shoot: Shoot) -> Given:
    """Return the values for the control plane of a cluster, once there is a network.

    Args:
        shoot: for IP families, overlay and `controlPlaneConfig`; an empty one is equivalent to a
            Shoot with IPv4 and an overlay.

    Raises:
        ExtensionError: the Infrastructure has no status yet, or one without VPC or subnets; or the
            Shoot's overlay setting is neither true nor false.
        Malformed: the Shoot's `controlPlaneConfig` has a value of a wrong type.
    """
    key, technical_id = Key.of(infrastructure), namespace_of(infrastructure)
    if not technical_id:
        raise problem(f"Infrastructure {key}: metadata.namespace is missing: it names the cluster")
    status = _provider_status(infrastructure)
    try:
        config_map = cloud_provider_config_map(status, technical_id, shoot.ip_families)
    except ExtensionError as error:
        raise ExtensionError(f"Infrastructure {key}: {error}", *error.codes) from None
    return Given(config_map, cloud_controller(status, technical_id), route_controller(shoot))


def _provider_status(infrastructure: JsonObject) -> JsonObject:
    where = f"Infrastructure {Key.of(infrastructure)}"
    status = map_at(infrastructure, "status", "providerStatus")
    if not status:
        raise problem(
            f"{where} has no status.providerStatus yet; wait until it is reconciled, and take it "
            "with its status"
        )
    found = GroupVersionKind.of(status)
    if found.group_kind != INFRASTRUCTURE_STATUS.group_kind:
        raise problem(
            f"{where}: status.providerStatus is not an {INFRASTRUCTURE_STATUS.group_kind}; only an "
            "Infrastructure of type aws has one"
        )
    return status
