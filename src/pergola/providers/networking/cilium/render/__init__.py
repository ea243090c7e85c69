"""Pure functions from values to objects; equal values give equal bytes."""

from pergola.api.objects import JsonObject
from pergola.manifests import Images
from pergola.providers.networking.cilium.render import config
from pergola.providers.networking.cilium.render.agent import agent, hubble_metrics, pod_checksums
from pergola.providers.networking.cilium.render.envoy import envoy
from pergola.providers.networking.cilium.render.hubble_certificates import certificates
from pergola.providers.networking.cilium.render.hubble_relay import relay
from pergola.providers.networking.cilium.render.hubble_ui import user_interface
from pergola.providers.networking.cilium.render.monitoring import monitoring
from pergola.providers.networking.cilium.render.operator import operator
from pergola.providers.networking.cilium.render.policies import policies
from pergola.providers.networking.cilium.render.rbac import rbac
from pergola.providers.networking.cilium.values import Values

__all__ = ["monitoring", "shoot_objects"]


def shoot_objects(values: Values, image: Images) -> list[JsonObject]:
    """Return all objects for the Shoot."""
    cilium_config, label_prefixes = config.cilium_config(values), config.label_prefixes()
    objects = [
        cilium_config,
        label_prefixes,
        *rbac(values),
        agent(values, image, pod_checksums(cilium_config, label_prefixes)),
        hubble_metrics(),
        *envoy(values, image),
        *operator(values, image, cilium_config),
        *policies(values),
    ]
    if values.hubble:
        objects += [*certificates(image), *relay(image), *user_interface(values, image)]
    return objects
