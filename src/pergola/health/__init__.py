"""Health and rollout of objects: one table of rules, pure functions of live objects.

Not for: reading objects or writing results. A problem is a text that describes what is wrong; None
means no problem.
"""

from pergola.health.components import (
    check_api_service,
    check_etcd,
    check_garden,
    check_machine_deployment,
    check_managed_seed,
    check_node,
    check_seed,
)
from pergola.health.control_plane import check_control_plane, deployment_problem, etcd_problem
from pergola.health.daemon_sets import check_daemon_set_preserved
from pergola.health.extensions import ExtensionFailure, check_extension
from pergola.health.managed_resources import CareFailure, care, check_ready, check_rolled_out
from pergola.health.pod_trouble import Trouble, pod_trouble
from pergola.health.pods import (
    check_deployment_updated,
    is_relevant,
    needs_pod_count,
    pods_of,
    pods_problem,
)
from pergola.health.rules import (
    HEALTH_KINDS,
    PROGRESSING_KINDS,
    check,
    has_rule,
    is_skipped,
    progressing,
)
from pergola.health.thresholds import failing_status

__all__ = [
    "HEALTH_KINDS",
    "PROGRESSING_KINDS",
    "CareFailure",
    "ExtensionFailure",
    "Trouble",
    "care",
    "check",
    "check_api_service",
    "check_control_plane",
    "check_daemon_set_preserved",
    "check_deployment_updated",
    "check_etcd",
    "check_extension",
    "check_garden",
    "check_machine_deployment",
    "check_managed_seed",
    "check_node",
    "check_ready",
    "check_rolled_out",
    "check_seed",
    "deployment_problem",
    "etcd_problem",
    "failing_status",
    "has_rule",
    "is_relevant",
    "is_skipped",
    "needs_pod_count",
    "pod_trouble",
    "pods_of",
    "pods_problem",
    "progressing",
]
