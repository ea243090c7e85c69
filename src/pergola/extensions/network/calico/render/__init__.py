"""The objects of Calico, made from `Values` alone: the same values give the same bytes."""

from pergola.api.objects import JsonObject
from pergola.extensions.network.calico.render.autoscaling import scaling_objects
from pergola.extensions.network.calico.render.compose import Images
from pergola.extensions.network.calico.render.config_map import calico_config, checksum
from pergola.extensions.network.calico.render.crds import calico_crds
from pergola.extensions.network.calico.render.kube_controllers import controller_objects
from pergola.extensions.network.calico.render.monitoring import monitoring_objects
from pergola.extensions.network.calico.render.multus import multus_objects
from pergola.extensions.network.calico.render.node import daemon_set, monitoring_services
from pergola.extensions.network.calico.render.pools import ip_pools
from pergola.extensions.network.calico.render.rbac import node_reader, roles
from pergola.extensions.network.calico.render.typha import typha_objects
from pergola.extensions.network.calico.values import Values

__all__ = ["Images", "monitoring_objects", "node_reader", "shoot_objects"]


def shoot_objects(values: Values, images: Images) -> list[JsonObject]:
    """Everything that runs in the Shoot."""
    config = calico_config(values)
    return [
        *calico_crds(),
        *roles(values),
        config,
        daemon_set(values, images, checksum(config)),
        *monitoring_services(values),
        *typha_objects(values, images),
        *scaling_objects(values, images),
        *controller_objects(values, images),
        *multus_objects(values, images),
        *ip_pools(values),
    ]
