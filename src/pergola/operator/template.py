"""The part of a landscape shared by all Gardens: images, settings and versions."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from pergola.api.operator_config import OperatorConfiguration, feature_gates_of
from pergola.api.operator_v1alpha1 import Garden
from pergola.bundle.image_vector import ImageVector
from pergola.garden.components.resource_manager.workload import IMAGE
from pergola.garden.landscape import Landscape, NodeTolerations, WebhookConfigurations
from pergola.operator.run.observed import Template

GARDENER_VERSION: Final = "v1.150.0"
"""The version of Gardener to deploy, unless an image vector names another one."""

_PROGRAM: Final = "gardener-apiserver"


def images(environment: Mapping[str, str]) -> ImageVector:
    """Return the image vector; an environment variable may name a file that overrides it.

    The resource managers of the Garden run from the image of the operator, if a variable names it.

    Raises:
        BundleError: A file cannot be read, or is not an image vector.
    """
    shipped = files("pergola.garden.components") / "images.yaml"
    return ImageVector.from_environment(shipped, environment, own=IMAGE)


def gardener_version(vector: ImageVector) -> str:
    """Return the version of Gardener's programs: that of its API server's image."""
    return vector.version_of(_PROGRAM, version=GARDENER_VERSION) or GARDENER_VERSION


def template(
    config: OperatorConfiguration,
    vector: ImageVector,
    runtime_version: str,
    webhook_configurations: WebhookConfigurations,
) -> Template:
    """Return a function from a Garden to its landscape, before any cluster is read.

    Args:
        runtime_version: The Kubernetes version of the runtime cluster.
        webhook_configurations: See `Landscape`.
    """
    controllers, tolerations = config.controllers, config.node_toleration
    selectors = controllers.network_policy.additional_namespace_selectors

    def of(garden: Garden) -> Landscape:
        return Landscape(
            garden=garden,
            runtime_version=runtime_version,
            gardener_version=gardener_version(vector),
            images=vector,
            webhook_configurations=webhook_configurations,
            feature_gates=feature_gates_of(config.feature_gates),
            log_level=config.log_level,
            log_format=config.log_format,
            network_policy_selectors=tuple(chosen.to_json() for chosen in selectors),
            etcd_config=controllers.garden.etcd_config.to_complete_json(),
            node_tolerations=NodeTolerations(
                not_ready=tolerations.default_not_ready_toleration_seconds,
                unreachable=tolerations.default_unreachable_toleration_seconds,
            ),
        )

    return of
