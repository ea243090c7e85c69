"""The objects of a control plane: pure functions of a plan and images (spec 31 §7).

values               what they depend on
conventions          parts that they share: labels, credentials, autoscalers
cloud_controller     nodes, and load balancers for Services
pod_networks         routes to pods, and IPv6 prefixes of nodes
load_balancer        the AWS load balancer controller
ebs_controller       volumes and snapshots: controllers on the seed
ebs_nodes            volumes: the driver on nodes, and permissions
efs                  volumes in a shared file system
csi_nodes            what both drivers on nodes share
classes              default classes of volumes and snapshots
definitions          CustomResourceDefinitions of other projects
network_unavailable  a policy about conditions of nodes
"""

from pergola.api.objects import JsonObject
from pergola.extensions.control_planes import Plan, Rendered
from pergola.manifests import Images
from pergola.providers.aws.control_plane.cloud_provider import cloud_provider_config_map
from pergola.providers.aws.control_plane.render import (
    cloud_controller,
    ebs_controller,
    ebs_nodes,
    efs,
    load_balancer,
    network_unavailable,
    pod_networks,
)
from pergola.providers.aws.control_plane.render.classes import storage_classes
from pergola.providers.aws.control_plane.render.definitions import definitions_for
from pergola.providers.aws.control_plane.render.values import Values
from pergola.providers.aws.control_plane_config import ControlPlaneConfig

__all__ = ["render"]


def render(plan: Plan[ControlPlaneConfig], images: Images, authority: str) -> Rendered:
    """Return the objects of a control plane.

    Args:
        authority: the credential that signs the certificates of webhooks.

    Raises:
        ExtensionError: the infrastructure or the Shoot lack something that the objects need.
    """
    values = Values(plan, images)
    config_map = cloud_provider_config_map(plan.infrastructure, values.name, values.families)
    seed = [
        *cloud_controller.seed_objects(values, config_map),
        *pod_networks.seed_objects(values),
        *load_balancer.seed_objects(values),
        *ebs_controller.seed_objects(values),
    ]
    return Rendered(
        configuration=[config_map],
        seed=[_placed(obj, values.name) for obj in seed],
        shoot=[
            *cloud_controller.shoot_objects(),
            *pod_networks.shoot_objects(values),
            *load_balancer.shoot_objects(values, plan.bundle_of(authority)),
            *ebs_nodes.shoot_objects(values),
            *efs.shoot_objects(values),
            *network_unavailable.shoot_objects(values),
        ],
        definitions=definitions_for(load_balancers=values.config.has_load_balancer_controller),
        storage_classes=storage_classes(values),
    )


def _placed(obj: JsonObject, namespace: str) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
