"""The account's quota of routes in a route table, which limits nodes without an overlay."""

import asyncio
from contextlib import suppress
from typing import Final

from pergola.cloud.errors import CloudError
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.observation import Observation

SERVICE: Final = "vpc"
CODE: Final = "L-93826ACB"
"""AWS's code of the quota."""
LEAST: Final = 50
"""The lowest quota: AWS's default for older accounts."""
_SMALL: Final = LEAST // 2
"""The nodes for which each account has enough routes, beside those of the network itself."""
_SECONDS: Final = 5.0
"""The quota is only for a hint, and its service may be unreachable from a private network."""


def may_exceed(desired: Desired) -> bool:
    """Return whether the nodes may need more routes than each account has."""
    nodes = sum(desired.most_nodes.values())
    return desired.ipv4 and not desired.overlay and nodes > _SMALL


async def observe_route_quota(seen: Observation) -> None:
    """Read the quota; leave it unknown if AWS refuses, or does not answer in time."""
    with suppress(CloudError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            answer = await seen.aws.call(
                "service-quotas", "GetServiceQuota", ServiceCode=SERVICE, QuotaCode=CODE
            )
        value = (answer.get("Quota") or {}).get("Value")
        if isinstance(value, int | float):
            seen.snapshot.route_quota = int(value)
