"""Health checks of extensions: what they look at, and how conditions come of it (spec 40 §2.6).

checks       what a check is, and those that are shipped
aggregate    from the results of several checks to one condition; pure
controller   runs the checks of a kind and type, and writes the conditions
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
