"""All preflight checks, and their effect on a reconciliation (spec 30 §2 item 4, §5)."""

from collections.abc import Iterable

from pergola.api.field_errors import sentence
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.preflight import ambiguity, hints, nodes, others, ranges, subnets, vpc
from pergola.providers.aws.preflight.finding import Finding
from pergola.providers.aws.snapshot import Snapshot


def findings(desired: Desired, snapshot: Snapshot) -> list[Finding]:
    """Return all findings about the account for a config; blocking ones first."""
    found = [
        *vpc.check(desired, snapshot),
        *ranges.check(desired, snapshot),
        *subnets.check(desired, snapshot),
        *others.check(desired, snapshot),
        *ambiguity.check(desired, snapshot),
    ]
    return [*found, *hints.check(desired, snapshot), *nodes.check(desired, snapshot)]


def demand(desired: Desired, snapshot: Snapshot) -> list[Finding]:
    """Return the findings that do not block, if no finding blocks.

    Raises:
        ExtensionError: findings block; the error lists all of them, each with the command that
            fixes it.
    """
    found = findings(desired, snapshot)
    blocking = [finding for finding in found if finding.blocks]
    if blocking:
        raise ExtensionError(_text(blocking), Code.CONFIGURATION_PROBLEM)
    return found


def _text(blocking: Iterable[Finding]) -> str:
    several = list(blocking)
    fixes = "; ".join(dict.fromkeys(finding.fix for finding in several))
    return f"{sentence(finding.cause for finding in several)} (to repair: {fixes})"
