"""The admission component of an extension, which runs in the garden (spec 40 §7.3)."""

from pergola.extensions.actuator import Actuator


def component_of(actuator: Actuator) -> str:
    """Return the name of an actuator's admission component, such as `admission-calico`."""
    return f"admission-{actuator.type}"
