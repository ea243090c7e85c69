"""`operator.gardener.cloud/v1alpha1`: the Garden and the operator's Extension (spec 20, spec 21).

`garden_from` converts any stored Garden to a `Garden` with all defaults.
"""

from pergola.api.operator_v1alpha1.defaults import default_garden, garden_from
from pergola.api.operator_v1alpha1.extension import Extension, extension_crd
from pergola.api.operator_v1alpha1.garden import Garden, GardenSpec, garden_crd
from pergola.api.operator_v1alpha1.names import API_VERSION, EXTENSION, GARDEN, GROUP, VERSION
from pergola.api.operator_v1alpha1.status import GardenStatus

__all__ = [
    "API_VERSION",
    "EXTENSION",
    "GARDEN",
    "GROUP",
    "VERSION",
    "Extension",
    "Garden",
    "GardenSpec",
    "GardenStatus",
    "default_garden",
    "extension_crd",
    "garden_crd",
    "garden_from",
]
