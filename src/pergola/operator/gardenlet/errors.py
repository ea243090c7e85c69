"""Errors of Gardenlets."""

from pergola.garden.landscape.errors import OperatorError


class GardenletFailed(OperatorError):
    """A gardenlet cannot be deployed; the text says why and what to do."""


class GardenletMoved(GardenletFailed):
    """A Gardenlet leads to another cluster than before; only a user can say whether it should."""
