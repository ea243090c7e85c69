"""Problems of a Worker, with the path of the field, and readers that find some."""

from typing import Final

from pergola.api.field_errors import Cause, invalid, shown
from pergola.api.objects import JsonObject, JsonValue
from pergola.extension_api.errors import Code, ExtensionError

NO_QUANTITY: Final = "must be a quantity, such as 500m, 2 or 1Gi"
_LONGEST: Final = 100


class Problem(ExtensionError):
    """A field that cannot be used as it is.

    Args:
        cause: the finding; its path starts at the pool until `under` completes it.
    """

    def __init__(self, cause: Cause) -> None:
        super().__init__(str(cause), Code.CONFIGURATION_PROBLEM)
        self.cause = cause

    def under(self, prefix: str) -> "Problem":
        """Return the problem for an object that contains this one at `prefix`."""
        return Problem(self.cause.under(prefix))


def unusable(path: str, value: JsonValue, detail: str) -> Problem:
    """Return the problem of a value, which the text shows unless it is long."""
    return Problem(invalid(path, _short(value), detail))


def plain(text: str) -> str:
    """Return a text for the middle of a sentence: on one line, and only the beginning if long."""
    return shown(_short(text))[1:-1]


def _short(value: JsonValue) -> JsonValue:
    """Return the beginning of a text, the type of a map or list, and other values as they are."""
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}…"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return value


def text_at(of: JsonObject, name: str, path: str) -> str:
    """Return a text; empty if it is absent.

    Raises:
        Problem: it is not a text.
    """
    value = of.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    raise unusable(path, value, "must be a text")


def boolean_at(of: JsonObject, name: str, path: str) -> bool | None:
    """Return a boolean, or None if it is absent.

    Raises:
        Problem: it is not a boolean.
    """
    value = of.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise unusable(path, value, "must be true or false")
