"""The care reconciler: the health of a Garden as four conditions (spec 21 §3).

It only reports: it never changes a component, a webhook or a spec.

settings       when it runs, and how long a condition may be `Progressing`
watches        the caches, and what they keep of each object
observe        the current content of the caches and the answers of the two API servers
api_server     the health endpoint of the virtual cluster's API server
prometheus     the health query of each Prometheus
extras         conditions that the original does not have: certificates, backups, DNS records
certificates   which certificates expire soon; pure
components     the state of single components; pure
check          from observations to a verdict about each condition; pure
conditions     from verdicts to the conditions of the status; pure
apply          patches the status, if it differs
metrics        the state of each component, and response times
"""

from pergola.operator.care.api_server import HealthEndpoint, Probe, VirtualApiServer
from pergola.operator.care.controller import garden_care
from pergola.operator.care.settings import Settings

__all__ = ["HealthEndpoint", "Probe", "Settings", "VirtualApiServer", "garden_care"]
