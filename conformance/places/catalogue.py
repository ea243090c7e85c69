"""The nine places, each with the checks of what the original configures there."""

from typing import Final

from conformance.places.checks.applied import MANAGED_RESOURCES, NETWORK_POLICIES
from conformance.places.place import Place

_GARDEN: Final = "garden"
_SHOOT: Final = "shoot--e2e--shoot"

PLACES: Final = (
    Place(
        "seed",
        "a Seed",
        _GARDEN,
        (MANAGED_RESOURCES, NETWORK_POLICIES),
        is_runtime=True,
    ),
)
