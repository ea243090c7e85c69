"""The target cluster as the controllers see it: watches that start when a kind is first needed.

A watch covers only what carries our `managed-by` label, so that a namespace list is never needed
and a large cluster costs no memory (spec 10 B8).
"""

from pergola.resource_manager.target.cluster import Target
from pergola.resource_manager.target.observed import Observed, TargetChange

__all__ = ["Observed", "Target", "TargetChange"]
