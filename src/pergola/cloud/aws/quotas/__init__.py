"""Request quotas of AWS accounts: rates that stay below them, and turns that are fair.

AWS gives each account and region a token bucket per API. `limits` has their documented sizes,
`bucket` counts tokens and adapts to throttling, `line` gives turns to users, and `Quotas` has the
lines of a process.
"""

from pergola.cloud.aws.quotas.quotas import UNSHARED, Quotas, User

__all__ = ["UNSHARED", "Quotas", "User"]
