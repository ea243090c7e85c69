"""Errors of Gardenlets."""

from pergola.garden.landscape.errors import OperatorError


class GardenletFailed(OperatorError):
    """A gardenlet cannot be deployed; the text says why and what to do."""
