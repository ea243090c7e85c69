"""`ControlPlaneConfig` of `aws.provider.extensions.gardener.cloud/v1alpha1` (spec 30 §7.3)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Final

from pergola.api.objects import GroupVersionKind
from pergola.api.schema.declare import Value
from pergola.providers.aws.config import GROUP

CONTROL_PLANE_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "ControlPlaneConfig")


class CloudControllerManager(Value):
    """The controller that connects Kubernetes to AWS."""

    feature_gates: dict[str, bool] = {}
    """Features that are switched on or off."""
    use_custom_route_controller: bool | None = None
    """Whether routes to pods are written into route tables: the opposite of an overlay."""


class LoadBalancerController(Value):
    """The controller that creates AWS load balancers for Services and Ingresses."""

    enabled: bool = False
    """Whether there is one."""
    ingress_class_name: str | None = None
    """The IngressClass that it serves; `alb` if absent."""


class Storage(Value):
    """Volumes."""

    managed_default_class: bool | None = None
    """Whether there are default classes for volumes and snapshots; there are if absent."""


class ControlPlaneConfig(Value):
    """The owner's configuration of the AWS parts of a control plane."""

    cloud_controller_manager: CloudControllerManager | None = None
    """The controller that connects Kubernetes to AWS."""
    load_balancer_controller: LoadBalancerController | None = None
    """The controller that makes load balancers of AWS for Services and Ingresses."""
    storage: Storage | None = None
    """Volumes."""

    @property
    def uses_route_controller(self) -> bool:
        """Whether pod routes are written into route tables."""
        manager = self.cloud_controller_manager
        return manager is not None and manager.use_custom_route_controller is True
