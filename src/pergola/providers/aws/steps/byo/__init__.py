"""Networks that users bring (spec 30 §4.3, §7.4, §8): nothing is created, only tags are added.

=============  ==============================================================================
`subnets`      reads the subnets, refuses what is ambiguous, remembers ids, ranges and records
`tagging`      which tags are missing, and adding them: one call for each set of tags
`records`      which tags of others' things are ours, written down before they are added
`tables`       the route tables into which pods' routes are written
`balancers`    the subnets for load balancers: named, or found by tags
=============  ==============================================================================

The order is what makes it safe to be killed anywhere: all checks, then the records, then the tags.
"""

from dataclasses import replace

from pergola.providers.aws.step import Step
from pergola.providers.aws.steps.byo import balancers, subnets, tables, tagging
from pergola.providers.aws.wanted import Wanted

__all__ = ["byo_steps"]


def byo_steps(wanted: Wanted, after: tuple[str, ...] = ()) -> list[Step]:
    """The steps for a network that was brought; none if subnets are to be created.

    Args:
        after: the steps that come before the first of these.
    """
    if not wanted.config.brings_subnets:
        return []
    first = replace(subnets.STEP, after=after)
    return [first, tagging.STEP, tables.STEP, balancers.STEP]
