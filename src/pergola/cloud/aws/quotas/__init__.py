"""Request quotas of AWS accounts: rates below the limits, and fair turns.

AWS gives each account and region a token bucket per API. `limits` lists their documented sizes,
`bucket` counts tokens and adapts to throttling, `line` gives turns to users, and `Quotas` has the
lines of a process.
"""

from pergola.cloud.aws.quotas.quotas import UNSHARED, Quotas, User

__all__ = ["UNSHARED", "Quotas", "User"]
