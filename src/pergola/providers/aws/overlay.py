"""Pod communication by an overlay, or by routes in the route tables (spec 30 §7.3)."""

from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.errors import Code, ExtensionError

PATH: Final = "spec.networking.providerConfig.overlay.enabled"
NOT_BOOLEAN: Final = "overlay.enabled is not a boolean"


def has_overlay(shoot: JsonObject) -> bool:
    """Return whether a Shoot has an overlay; it has one by default.

    Raises:
        ExtensionError: it is neither true nor false.
    """
    value = map_at(shoot, "spec", "networking", "providerConfig", "overlay").get("enabled")
    if value is None:
        return True
    if not isinstance(value, bool):
        raise ExtensionError(f"{PATH}: {NOT_BOOLEAN}", Code.CONFIGURATION_PROBLEM)
    return value
