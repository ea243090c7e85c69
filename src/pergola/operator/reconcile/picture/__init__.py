"""The state of a Garden's tasks, seen from outside the process that runs them.

`steps` derives the tasks from the Garden, `reported` reads the operator's report about them,
`states` decides, and `following` keeps a picture up to date by watching. The cluster is the source
of truth: the operator may be another process, or down.

Not for: printing, or why an object is not ready, which `explain` determines.
"""

from pergola.operator.reconcile.picture.following import following
from pergola.operator.reconcile.picture.picture import (
    NO_OPERATION,
    Operation,
    Picture,
    State,
    Task,
    Wait,
)

__all__ = ["NO_OPERATION", "Operation", "Picture", "State", "Task", "Wait", "following"]
