"""`pergola aws check`: is an account as a cluster needs it, and what repairs it if not."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws.asked import Asked, asked_at, looked, place_of

if TYPE_CHECKING:
    from pergola.providers.aws.preflight import Finding

Output = Annotated[Literal["text", "json"], Parameter(alias="-o")]
Namespace = Annotated[str, Parameter(alias="-n")]


def check(
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = "",
    name: str = "",
    namespace: Namespace = "default",
    aws_credentials: str = "",
    endpoint_url: str = "",
    output: Output = "text",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Check the AWS account that an Infrastructure is for, and show what repairs it.

    Only reads. What forbids to go on is an error, the rest a hint; below each is the line of the
    AWS CLI that repairs it. Exits with 1 if there is an error.

    Parameters
    ----------
    file
        A manifest with an Infrastructure; - reads it from the standard input. A Cluster beside it
        tells ranges and IP families, a Secret beside it the credentials.
    name
        An Infrastructure in a cluster, in place of a file.
    namespace
        Its namespace.
    aws_credentials
        NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey, or `environment` for AWS's
        usual chain. Without it the Secret that the Infrastructure names; with a file that does not
        hold it, AWS's usual chain.
    endpoint_url
        Where all services of AWS are, if not at AWS.
    output
        `text` for people, `json` for programs.
    kubeconfig
        The seed, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    place = place_of(file, name, namespace, aws_credentials, kubeconfig, context)

    async def main() -> "list[Finding]":
        return await _look(await asked_at(place), endpoint_url)

    found = asyncio.run(main())
    if output == "json":
        _print_json(found)
    else:
        _print_text(found)
    if any(finding.blocks for finding in found):
        sys.exit(1)


async def _look(asked: Asked, endpoint_url: str) -> "list[Finding]":
    from pergola.providers.aws.preflight import check_rules, findings

    if asked.cluster is None:
        print("no Cluster beside it: checked as IPv4, and against no ranges", file=sys.stderr)
    async with looked(asked, endpoint_url) as work:
        return [
            *findings(work.wanted, work.snapshot),
            *check_rules(work.wanted, work.snapshot),
        ]


def _print_text(found: "list[Finding]") -> None:
    for finding in found:
        print(f"{'error' if finding.blocks else 'hint'}: {finding}")
        print(f"  {finding.fix}")
    if not any(finding.blocks for finding in found):
        print("AWS is as the cluster needs it" if not found else "no blocking problems")


def _print_json(found: "list[Finding]") -> None:
    import orjson

    rows = [
        {**finding.cause._asdict(), "fix": finding.fix, "blocks": finding.blocks}
        for finding in found
    ]
    print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
