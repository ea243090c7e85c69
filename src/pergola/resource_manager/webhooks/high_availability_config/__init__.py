"""Distribution and number of replicas over nodes and zones (spec 12 §3).

`review` has the steps; `settings` reads the annotations of namespaces; `replicas`, `affinity`,
`spread` and `tolerations` are the tables, as pure functions; `observe` reads from the cluster.
"""

from pergola.resource_manager.webhooks.high_availability_config.review import (
    NAME,
    PATH,
    HighAvailability,
    registrations,
)

__all__ = ["NAME", "PATH", "HighAvailability", "registrations"]
