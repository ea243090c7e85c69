"""Names of the steps for user-provided networks, for steps that depend on them."""

from typing import Final

READ: Final = "read subnets"
"""After it, the subnets' ids and actual ranges are in the state."""
TAG: Final = "tag subnets and route tables"
UNTAG: Final = "untag route tables"
FIND: Final = "find load balancer subnets"
"""After it, the subnets for load balancers are in the state."""
