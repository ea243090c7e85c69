"""A dry run: what a reconciliation of a Garden would do.

`rehearse` runs the tasks of both flows with a client that keeps its writes. A plan without changes
thus means a reconciliation without writes, except to the Garden's status.
"""

from pergola.operator.plan.model import Change, Fate, Field, Plan, Planned, Verb
from pergola.operator.plan.rehearse import rehearse

__all__ = ["Change", "Fate", "Field", "Plan", "Planned", "Verb", "rehearse"]
