"""Errors about Extensions."""

from pergola.garden.landscape.errors import OperatorError


class ExtensionFailed(OperatorError):
    """An Extension cannot be installed; the text says why and what to do."""


class NotYet(OperatorError):
    """Something that an Extension needs does not exist yet.

    Attributes:
        seconds: When to check again.
    """

    def __init__(self, text: str, seconds: float) -> None:
        """Make the error of what is missing."""
        super().__init__(text)
        self.seconds = seconds
