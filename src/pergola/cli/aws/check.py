"""`pergola aws check`: check that an AWS account is ready for a cluster."""

import asyncio
import sys
from typing import TYPE_CHECKING

from pergola.cli.aws.subject import (
    DEFAULT_ACCOUNT,
    DEFAULT_SOURCE,
    Account,
    Source,
    Subject,
    observed,
    read_subject,
)
from pergola.cli.output import ReportOutput, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonValue
    from pergola.providers.aws.preflight import Finding


def check(
    resource: str = "",
    /,
    *,
    source: Source = DEFAULT_SOURCE,
    output: ReportOutput = "text",
    account: Account = DEFAULT_ACCOUNT,
) -> None:
    """Check the AWS account that an Infrastructure is for, and show how to fix it.

    Only reads. Findings that block a reconciliation are errors, all others hints; each comes with
    the AWS CLI command that fixes it. Exits with 1 if there is an error.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    """

    async def main() -> "list[Finding]":
        subject = await read_subject(resource, source, account.aws_credentials)
        return await _observe(subject, account.endpoint_url)

    found = asyncio.run(main())
    show(output, data=finding_rows(found), text=lambda: _print_text(found))
    if any(finding.blocks for finding in found):
        sys.exit(1)


async def _observe(subject: Subject, endpoint_url: str) -> "list[Finding]":
    from pergola.providers.aws.preflight import check_rules, findings

    if subject.cluster is None:
        say(
            "no Cluster found: assuming IPv4, and skipping the checks against ranges",
            file=sys.stderr,
        )
    async with observed(subject, endpoint_url) as work:
        return [
            *findings(work.desired, work.snapshot),
            *check_rules(work.desired, work.snapshot),
        ]


def _print_text(found: "list[Finding]") -> None:
    for finding in found:
        say(f"{'error' if finding.blocks else 'hint'}: {finding}")
        say(f"  {finding.fix}")
    if not any(finding.blocks for finding in found):
        say("the account is ready for the cluster" if not found else "no blocking problems")


def finding_rows(found: "list[Finding]") -> "list[JsonValue]":
    """Return findings for programs."""
    return [
        {**finding.cause._asdict(), "fix": finding.fix, "blocks": finding.blocks}
        for finding in found
    ]
