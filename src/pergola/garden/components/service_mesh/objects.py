"""Istio as a component: the control plane and the gateway, each in a ManagedResource of its own."""

from typing import Final

from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.removal import removable
from pergola.garden.components.service_mesh.entrances import internal, load_balancer
from pergola.garden.components.service_mesh.filters import filters
from pergola.garden.components.service_mesh.gateway import gateway, mesh_namespace
from pergola.garden.components.service_mesh.istiod import istiod
from pergola.garden.components.service_mesh.permissions import NAMESPACE, permissions
from pergola.garden.components.service_mesh.scaling import metrics, scaling
from pergola.garden.landscape import Landscape


def render(landscape: Landscape) -> Rendered:
    """Return the namespace of the control plane, and everything in both namespaces.

    The gateway follows its control plane, as in upgrades of Istio. Its pods mount a ConfigMap that
    the control plane creates, and the kubelet retries with growing intervals of up to two minutes.
    """
    control_plane = (*permissions(), *istiod(landscape))
    ingress = (
        *gateway(landscape),
        *scaling(landscape),
        *metrics(),
        load_balancer(landscape),
        internal(landscape),
        *filters(landscape),
    )
    return Rendered(
        direct=(mesh_namespace(landscape, NAMESPACE, NAMESPACE),),
        managed=(
            Managed(name="istio-system", objects=control_plane, namespace=NAMESPACE),
            Managed(
                name="virtual-garden-istio", objects=ingress, namespace=NAMESPACE, follows=True
            ),
        ),
    )


ISTIO: Final = Component(
    name="istio",
    deploy=task_names.ISTIO,
    render=render,
    removable=removable(managed=("virtual-garden-istio", NAMESPACE), namespace=NAMESPACE),
    limit=120.0,
)
