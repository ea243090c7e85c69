"""The Secrets and ConfigMaps that Extensions name (spec 21 §13.7)."""

from typing import Final

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.controllers.references import (
    SECRET,
    Reference,
    Referrer,
    names_at,
    resources_at,
)
from pergola.garden.landscape import NAMESPACE

_DEPLOYMENT: Final = "spec.deployment"
_CHARTS: Final = ("extension", "admission.runtimeCluster", "admission.virtualCluster")
_SECRETS: Final = tuple(
    f"{_DEPLOYMENT}.{chart}.helm.ociRepository.{field}.name"
    for chart in _CHARTS
    for field in ("pullSecretRef", "caBundleSecretRef")
)


def references_of(extension: JsonObject) -> tuple[Reference, ...]:
    """Return the references of an Extension: for its registries, and for its values."""
    return (
        *names_at(extension, _SECRETS, SECRET, NAMESPACE),
        *resources_at(extension, f"{_DEPLOYMENT}.resources[].resourceRef", NAMESPACE),
    )


EXTENSION_REFERENCES: Final = Referrer(
    EXTENSION, "extension-reference", references_of, handled_by=marks.OPERATOR_FINALIZER
)
"""The objects that Extensions name are protected until the Extensions are removed."""
