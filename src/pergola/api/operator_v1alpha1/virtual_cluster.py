"""`spec.virtualCluster` of a Garden: the cluster that it provides (spec 20 §5.3, §5.4)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final

from msgspec import Meta, field

from pergola.api.operator_v1alpha1.etcd import Etcd
from pergola.api.operator_v1alpha1.facets import NOT_EMPTY, DnsDomain, Int32, PositiveDuration
from pergola.api.operator_v1alpha1.gardener import Gardener
from pergola.api.operator_v1alpha1.kube_api_server import KubeApiServer
from pergola.api.schema.declare import Value, default
from pergola.api.schema.duration import Duration

_ZONE: Final = r"(\+(0[0-9]|1[0-4])|-(0[0-9]|1[0-2]))00"
TimeOfDay = Annotated[str, Meta(pattern=rf"^([0-1][0-9]|2[0-3])[0-5][0-9][0-5][0-9]{_ZONE}$")]
"""A time of the day with the zone's offset, such as `220000+0100`; zones are -12 to +14 hours."""


class HighAvailability(Value):
    """High availability, which spreads replicas over nodes or zones; it has no settings."""


class ControlPlane(Value):
    """Settings of the control plane."""

    high_availability: HighAvailability | None = None
    """High availability, which survives the loss of a node or zone; it cannot be removed."""


class Dns(Value):
    """The DNS names of the virtual cluster."""

    domains: Annotated[list[DnsDomain], NOT_EMPTY] = []
    """The domains of the virtual cluster. The first one is immutable."""


class HorizontalPodAutoscaler(Value):
    """Settings of horizontal autoscaling, which a cluster without nodes does not allow."""

    cpu_initialization_period: Duration | None = None
    """The time after a pod's start during which its CPU does not count."""
    downscale_stabilization: Duration | None = None
    """The time for which a recommendation to scale down must last before it is followed."""
    initial_readiness_delay: Duration | None = None
    """The time after a pod's start during which any readiness counts as the first one."""
    sync_period: Duration | None = None
    """The time between two checks."""
    tolerance: float | None = None
    """The tolerated deviation of the load."""


class KubeControllerManager(Value):
    """Settings of the virtual cluster's kube-controller-manager."""

    certificate_signing_duration: Annotated[PositiveDuration, default("48h")] = Duration(hours=48)
    """The longest lifetime of certificates that it signs."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of Kubernetes."""
    horizontal_pod_autoscaler: HorizontalPodAutoscaler | None = None
    """Not allowed, because the virtual cluster has no nodes."""
    node_cidr_mask_size: Int32 | None = field(name="nodeCIDRMaskSize", default=None)
    """Not allowed, because the virtual cluster has no nodes."""
    node_cidr_mask_size_ipv6: Int32 | None = field(name="nodeCIDRMaskSizeIPv6", default=None)
    """Not allowed, because the virtual cluster has no nodes."""
    node_monitor_grace_period: Duration | None = None
    """Not allowed, because the virtual cluster has no nodes."""
    pod_eviction_timeout: Duration | None = None
    """Not allowed, because the virtual cluster has no nodes."""


class Kubernetes(Value):
    """The Kubernetes components of the virtual cluster."""

    version: Annotated[str, NOT_EMPTY]
    """The version of Kubernetes, such as `1.34.2`."""
    kube_api_server: KubeApiServer = field(name="kubeAPIServer", default_factory=KubeApiServer)
    """Settings of the kube-apiserver."""
    kube_controller_manager: KubeControllerManager = field(default_factory=KubeControllerManager)
    """Settings of the kube-controller-manager."""


class MaintenanceTimeWindow(Value):
    """A daily window for maintenance."""

    begin: TimeOfDay
    """The start of the window, such as `220000+0100`."""
    end: TimeOfDay
    """The end of the window, such as `230000+0100`."""


class RotationSchedule(Value):
    """The schedule for the rotation of a credential."""

    rotation_period: PositiveDuration
    """The time between the starts of two rotations."""


class TwoStepRotationSchedule(RotationSchedule):
    """The schedule for a rotation during which the old credential stays valid."""

    complete_after: PositiveDuration | None = None
    """The time for which the old credential stays valid; if absent, a user completes rotations."""


class MaintenanceAutoRotationCredentials(Value):
    """The credentials that are rotated on a schedule."""

    certificate_authorities: TwoStepRotationSchedule | None = None
    """The certificate authorities, and all certificates that they sign."""
    service_account_key: TwoStepRotationSchedule | None = None
    """The key that signs tokens of ServiceAccounts."""
    workload_identity_key: TwoStepRotationSchedule | None = None
    """The key that signs tokens of workload identities."""
    etcd_encryption_key: RotationSchedule | None = None
    """The keys that encrypt objects in etcd."""
    observability: RotationSchedule | None = None
    """The passwords of the observability hosts."""


class MaintenanceAutoRotation(Value):
    """Rotations that begin automatically."""

    credentials: MaintenanceAutoRotationCredentials = field(
        default_factory=MaintenanceAutoRotationCredentials
    )
    """The credentials that are rotated on a schedule; none by default."""


class Maintenance(Value):
    """The maintenance of the virtual cluster."""

    time_window: MaintenanceTimeWindow
    """The window for full snapshots, defragmentation, and evictions that resize pods."""
    auto_rotation: MaintenanceAutoRotation | None = None
    """Credential rotations that begin automatically in the window; an addition of Pergola."""


class Networking(Value):
    """The networks of the virtual cluster."""

    services: Annotated[list[str], NOT_EMPTY]
    """Address ranges of Services; ranges can only be appended."""


class VirtualCluster(Value):
    """The cluster that the garden provides."""

    dns: Dns
    """The DNS names of the cluster."""
    gardener: Gardener
    """The Gardener components."""
    kubernetes: Kubernetes
    """The Kubernetes components."""
    maintenance: Maintenance
    """The maintenance of the cluster."""
    networking: Networking
    """The networks of the cluster."""
    control_plane: ControlPlane = field(default_factory=ControlPlane)
    """Settings of the control plane."""
    etcd: Etcd = field(default_factory=Etcd)
    """The two etcds."""
