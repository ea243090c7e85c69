"""The phases of a credential's rotation (spec 21 §10.3)."""

from typing import Final

from pergola.api.operator_v1alpha1.status import Rotation

PREPARING: Final = "Preparing"
PREPARED: Final = "Prepared"
COMPLETING: Final = "Completing"
COMPLETED: Final = "Completed"


def phase_of(rotation: Rotation | None) -> str:
    """Return the phase of a rotation; empty if there was none."""
    return rotation.phase if rotation else ""
