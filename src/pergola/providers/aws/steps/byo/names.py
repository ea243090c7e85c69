"""The names of the steps of a network that was brought, for those that come after them."""

from typing import Final

READ: Final = "read subnets"
"""After it the subnets' ids and real ranges are in the state."""
TAG: Final = "tag subnets and route tables"
UNTAG: Final = "untag route tables"
FIND: Final = "find load balancer subnets"
"""After it the subnets for load balancers are in the state."""
