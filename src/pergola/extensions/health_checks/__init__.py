"""Health checks of extensions, and the resulting conditions (spec 40 §2.6).

checks       the interface of a check, and common checks
execution    runs the checks of one resource
aggregate    from the results of several checks to one condition; pure
conditions   writes the conditions
controller   watches the resources of a kind and type, and the inputs of their checks
"""

from pergola.extensions.health_checks.checks import (
    CONTROL_PLANE_HEALTHY,
    EVERY_NODE_READY,
    OBSERVABILITY_COMPONENTS_HEALTHY,
    SYSTEM_COMPONENTS_HEALTHY,
    CheckContext,
    HealthCheck,
    Verdict,
    daemon_set,
    deployment,
    managed_resource,
    stateful_set,
)
from pergola.extensions.health_checks.controller import Settings, health_controller

__all__ = [
    "CONTROL_PLANE_HEALTHY",
    "EVERY_NODE_READY",
    "OBSERVABILITY_COMPONENTS_HEALTHY",
    "SYSTEM_COMPONENTS_HEALTHY",
    "CheckContext",
    "HealthCheck",
    "Settings",
    "Verdict",
    "daemon_set",
    "deployment",
    "health_controller",
    "managed_resource",
    "stateful_set",
]
