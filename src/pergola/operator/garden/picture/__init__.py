"""The tasks of a Garden's flow as they stand, seen from outside of the process that runs them.

`steps` derives the tasks from the Garden, `reported` reads what the operator reports about them,
`states` decides, and `following` keeps a picture up to date by watching. The cluster is the truth:
the operator may be another process, or down.

Not for: printing, and for why an object is not ready, which `explain` finds out.
"""

from pergola.operator.garden.picture.following import following
from pergola.operator.garden.picture.picture import (
    NO_OPERATION,
    Operation,
    Picture,
    State,
    Task,
    Wait,
)

__all__ = ["NO_OPERATION", "Operation", "Picture", "State", "Task", "Wait", "following"]
