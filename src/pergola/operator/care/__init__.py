"""The care reconciler: the health of a Garden as four conditions (spec 21 §3).

It only reports: it never changes a component, a webhook or a spec.

controller     when it runs, and the steps of a run; patches the status, if it differs
observe        settings, caches, and the current answers of servers
servers        the health of the virtual cluster's API server, and the query of each Prometheus
extras         conditions that the original does not have: certificates, backups, DNS records
check          from observations to a verdict about each condition; pure
conditions     from verdicts to the conditions of the status; pure
metrics        the state of each component, and response times
"""

from pergola.operator.care.controller import garden_care
from pergola.operator.care.observe import Settings
from pergola.operator.care.servers import Probe, Probing, probe

__all__ = ["Probe", "Probing", "Settings", "garden_care", "probe"]
