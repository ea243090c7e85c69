"""`pergola aws check`: check that an AWS account is ready for a cluster."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws.subject import (
    DEFAULT_ACCOUNT,
    DEFAULT_SOURCE,
    Account,
    Source,
    Subject,
    observed,
    read_subject,
)
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.providers.aws.preflight import Finding

Output = Annotated[Literal["text", "json"], Parameter(alias="-o")]


def check(
    resource: str = "",
    /,
    *,
    source: Source = DEFAULT_SOURCE,
    output: Output = "text",
    account: Account = DEFAULT_ACCOUNT,
) -> None:
    """Check the AWS account that an Infrastructure is for, and show how to fix it.

    Only reads. Findings that block a reconciliation are errors, all others hints; each comes with
    the AWS CLI command that fixes it. Exits with 1 if there is an error.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    output
        `text` for people, `json` for programs.
    """

    async def main() -> "list[Finding]":
        subject = await read_subject(resource, source, account.aws_credentials)
        return await _observe(subject, account.endpoint_url)

    found = asyncio.run(main())
    if output == "json":
        _print_json(found)
    else:
        _print_text(found)
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


def _print_json(found: "list[Finding]") -> None:
    import orjson

    rows = [
        {**finding.cause._asdict(), "fix": finding.fix, "blocks": finding.blocks}
        for finding in found
    ]
    say(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
