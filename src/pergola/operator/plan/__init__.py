"""What a reconciliation of a Garden would do, known without doing it.

`rehearse` runs the tasks of both flows with a client that keeps its writes. So a plan without
changes means a reconciliation without writes, but for the Garden's status.
"""

from pergola.operator.plan.model import Change, Fate, Field, Plan, Planned, Verb
from pergola.operator.plan.rehearse import rehearse

__all__ = ["Change", "Fate", "Field", "Plan", "Planned", "Verb", "rehearse"]
