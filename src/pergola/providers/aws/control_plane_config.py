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
    """Features to enable or disable."""
    use_custom_route_controller: bool | None = None
    """Whether to write pod routes into route tables, instead of using an overlay."""


class LoadBalancerController(Value):
    """The controller that creates AWS load balancers for Services and Ingresses."""

    enabled: bool = False
    """Whether to deploy it."""
    ingress_class_name: str | None = None
    """The IngressClass that it serves; `alb` if absent."""


class Storage(Value):
    """Volumes."""

    managed_default_class: bool | None = None
    """Whether to create default classes for volumes and snapshots; true if absent."""


class ControlPlaneConfig(Value):
    """The owner's configuration of the AWS parts of a control plane."""

    cloud_controller_manager: CloudControllerManager | None = None
    """The controller that connects Kubernetes to AWS."""
    load_balancer_controller: LoadBalancerController | None = None
    """The controller that creates AWS load balancers for Services and Ingresses."""
    storage: Storage | None = None
    """Volumes."""

    @property
    def uses_route_controller(self) -> bool:
        """Whether pod routes are written into route tables."""
        manager = self.cloud_controller_manager
        return manager is not None and manager.use_custom_route_controller is True

    @property
    def has_load_balancer_controller(self) -> bool:
        """Whether the AWS load balancer controller runs."""
        return self.load_balancer_controller is not None and self.load_balancer_controller.enabled

    @property
    def manages_default_classes(self) -> bool:
        """Whether our classes for volumes and snapshots are the defaults."""
        return self.storage is None or self.storage.managed_default_class is not False
