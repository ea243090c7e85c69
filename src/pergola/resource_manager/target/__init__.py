"""The target cluster as the controllers see it: watches start when a kind is first needed.

A watch covers only objects with our `managed-by` label, so that namespaces are never listed as a
whole and a large cluster costs no memory (spec 10 B8).
"""

from pergola.resource_manager.target.cluster import Target
from pergola.resource_manager.target.observed import Observed, TargetChange
from pergola.resource_manager.target.unwatched import UnwatchedKinds

__all__ = ["Observed", "Target", "TargetChange", "UnwatchedKinds"]
