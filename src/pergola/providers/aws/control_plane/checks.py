"""The checks of a ControlPlane in AWS, before anything is written (spec 31 §6)."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, required
from pergola.api.known.feature_gate_rules import check_kubernetes_feature_gates
from pergola.api.known.kubernetes_versions import parse_version
from pergola.api.objects import map_at
from pergola.extensions.control_planes import Plan
from pergola.providers.aws.control_plane.cloud_provider import NO_VPC
from pergola.providers.aws.control_plane.subnets import NO_SUBNET, has_subnet
from pergola.providers.aws.control_plane_config import ControlPlaneConfig
from pergola.providers.aws.validation.identifiers import check_text
from pergola.providers.aws.workload_identity import has_workload_identity

_CONFIG: Final = "spec.providerConfig"
_STATUS: Final = "spec.infrastructureProviderStatus"
INGRESS_CLASS: Final = re.compile("[a-z0-9.-]+")
LONGEST_INGRESS_CLASS: Final = 253
_KEYS: Final = ("accessKeyID", "secretAccessKey", "credentialsFile")
_ROLE: Final = ("roleARN", "token", "workloadIdentityTokenFile", "credentialsFile")


def check(plan: Plan[ControlPlaneConfig]) -> Iterator[Cause]:
    """Yield the problems of the config, of the network, and of the Secret with credentials."""
    yield from check_config(plan.config, plan.shoot.kubernetes_version, _CONFIG)
    if not plan.region:
        yield required("spec.region", "controllers need the region in AWS")
    if not map_at(plan.infrastructure, "vpc").get("id"):
        yield required(f"{_STATUS}.vpc.id", NO_VPC)
    elif not has_subnet(plan.infrastructure):
        yield required(f"{_STATUS}.vpc.subnets", NO_SUBNET)
    data = map_at(plan.credentials, "data")
    keys = _ROLE if has_workload_identity(plan.credentials) else _KEYS
    if missing := [key for key in keys if not data.get(key)]:
        name = map_at(plan.credentials, "metadata").get("name")
        yield required(
            "spec.secretRef", f"Secret {plan.namespace}/{name} lacks {', '.join(missing)}"
        )


def check_config(config: ControlPlaneConfig, kubernetes: str, path: str) -> Iterator[Cause]:
    """Yield the problems of a ControlPlaneConfig.

    Args:
        kubernetes: the version of the Shoot.
        path: of the config.
    """
    manager, version = config.cloud_controller_manager, parse_version(kubernetes)
    if manager is not None and manager.feature_gates and version is not None:
        gates = f"{path}.cloudControllerManager.featureGates"
        yield from check_kubernetes_feature_gates(manager.feature_gates, version, gates)
    if config.load_balancer_controller is not None:
        yield from check_text(
            f"{path}.loadBalancerController.ingressClassName",
            config.load_balancer_controller.ingress_class_name,
            INGRESS_CLASS,
            longest=LONGEST_INGRESS_CLASS,
        )
