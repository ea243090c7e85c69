"""Is an object healthy, is it rolled out: one table of rules, pure functions of live objects.

Not for: reading objects, or writing what was found.
"""

from pergola.health.pods import needs_pod_count, pods_problem
from pergola.health.rules import check, has_health_rule, is_skipped, progressing

__all__ = [
    "check",
    "has_health_rule",
    "is_skipped",
    "needs_pod_count",
    "pods_problem",
    "progressing",
]
