"""Distribution and number of replicas over nodes and zones (spec 12 §3).

`review` has the steps; `replicas`, `affinity`, `spread` and `tolerations` are the tables, as pure
functions. `webhooks.facts` reads the annotations of namespaces, and autoscalers and nodes.
"""

from pergola.resource_manager.webhooks.high_availability_config.review import (
    NAME,
    PATH,
    HighAvailability,
    registrations,
)

__all__ = ["NAME", "PATH", "HighAvailability", "registrations"]
