"""Whether a Shoot needs feature gates for VolumeAttributesClasses (spec 31 §7.1)."""

from typing import Final

from pergola.api.known.kubernetes_versions import Minor, Version, parse_version
from pergola.api.marks import is_truthy
from pergola.api.objects import annotations_of
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import configuration_problem
from pergola.providers.aws.config import GROUP

_STABLE: Final = Minor(1, 34)
_CHOSEN: Final = f"{GROUP}/enable-volume-attributes-class"


def needs_volume_class_gate(shoot: Shoot) -> bool:
    """Return whether its owner wants VolumeAttributesClasses before they are on by default.

    Raises:
        ExtensionError: the Shoot has no Kubernetes version.
    """
    is_chosen = is_truthy(annotations_of(shoot.raw).get(_CHOSEN))
    return version_of(shoot).of_minor < _STABLE and is_chosen


def version_of(shoot: Shoot) -> Version:
    """Return the Kubernetes version of a Shoot.

    Raises:
        ExtensionError: it has none.
    """
    version = parse_version(shoot.kubernetes_version)
    if version is None:
        raise configuration_problem(
            f'the Shoot has no Kubernetes version, but "{shoot.kubernetes_version}"'
        )
    return version
