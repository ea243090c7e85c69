"""Spreading of replicas over nodes and zones, and their number (spec 12 §3).

`review` has the steps; `settings` reads what a namespace says; `replicas`, `affinity`, `spread` and
`tolerations` are the tables, as pure functions; `observe` answers what has to be known of the
cluster.
"""

from pergola.resource_manager.webhooks.high_availability_config.review import (
    NAME,
    PATH,
    HighAvailability,
    registrations,
)

__all__ = ["NAME", "PATH", "HighAvailability", "registrations"]
