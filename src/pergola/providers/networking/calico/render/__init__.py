"""The objects of Calico; the same `Values` render the same bytes."""

from pergola.api.objects import JsonObject
from pergola.manifests import Images
from pergola.providers.networking.calico.render.autoscaling import scaling_objects
from pergola.providers.networking.calico.render.config_map import calico_config, checksum
from pergola.providers.networking.calico.render.crds import calico_crds
from pergola.providers.networking.calico.render.kube_controllers import controller_objects
from pergola.providers.networking.calico.render.monitoring import monitoring_objects
from pergola.providers.networking.calico.render.multus import multus_objects
from pergola.providers.networking.calico.render.node import daemon_set, monitoring_services
from pergola.providers.networking.calico.render.pools import ip_pools
from pergola.providers.networking.calico.render.rbac import roles
from pergola.providers.networking.calico.render.typha import typha_objects
from pergola.providers.networking.calico.values import Values

__all__ = ["Images", "monitoring_objects", "shoot_objects"]


def shoot_objects(values: Values, images: Images) -> list[JsonObject]:
    """Return all objects for the Shoot."""
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
