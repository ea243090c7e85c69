"""User-provided networks (spec 30 §4.3, §7.4, §8, §9.3): nothing is created, only tags are added.

vpc             checks of an existing VPC
subnets         reads the subnets, rejects ambiguous ones, remembers ids, ranges and records
tagging         which tags are missing, and adding them: one request for each set of tags
records         which tags on the user's resources are ours, recorded before they are added
tables          the route tables into which pod routes are written
balancers       the subnets for load balancers: named, or discovered by tags
load_balancers  which subnets tags offer, and which one controllers choose
untagging       removes our tags again
pod_routes      removes pod routes of nodes that are gone

This order makes interruptions safe: all checks, then the records, then the tags.
"""

from dataclasses import replace

from pergola.providers.aws.byo import (
    balancers,
    pod_routes,
    subnets,
    tables,
    tagging,
    untagging,
)
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import service_range
from pergola.providers.aws.resources.step import Step

__all__ = ["byo_delete_steps", "byo_steps"]


def byo_steps(desired: Desired, after: tuple[str, ...] = ()) -> list[Step]:
    """Return the steps for user-provided subnets; none if subnets are managed.

    Args:
        after: the steps that come before the first of these.
    """
    if not desired.config.byo_subnets:
        return []
    first = replace(subnets.STEP, after=after)
    return [first, tagging.STEP, tables.STEP, balancers.STEP]


def byo_delete_steps(
    desired: Desired, *, after: tuple[str, ...] = (), remove_pod_routes: bool = False
) -> list[Step]:
    """Return the steps that leave user-provided subnets; none if subnets are managed.

    Args:
        after: the steps that precede all of these.
        remove_pod_routes: whether to delete pod routes of deleted nodes as well.
    """
    if not desired.config.byo_subnets:
        return []
    return [
        pod_routes.delete_step(after, allowed=remove_pod_routes),
        service_range.release_step(after),
        untagging.step(after=(*after, pod_routes.DELETE, service_range.RELEASE)),
    ]
