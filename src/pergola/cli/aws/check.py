"""`pergola aws check`: check that an AWS account is ready for a cluster."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws.subject import Subject, observed, read_subject, source_of
from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions

if TYPE_CHECKING:
    from pergola.providers.aws.preflight import Finding

Output = Annotated[Literal["text", "json"], Parameter(alias="-o")]
Namespace = Annotated[str, Parameter(alias="-n")]


def check(
    resource: str = "",
    /,
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = "",
    name: str = "",
    namespace: Namespace = "default",
    aws_credentials: str = "",
    endpoint_url: str = "",
    output: Output = "text",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Check the AWS account that an Infrastructure is for, and show how to fix it.

    Only reads. Findings that block a reconciliation are errors, all others hints; each comes with
    the AWS CLI command that fixes it. Exits with 1 if there is an error.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    file
        A manifest with an Infrastructure, or - for the standard input. IP families and ranges come
        from a Cluster in the same file, credentials from a Secret in it.
    name
        The same as the positional argument.
    namespace
        Namespace of the Infrastructure.
    aws_credentials
        NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey, or `environment` for AWS's
        default credential chain. The default is the Secret that the Infrastructure names, and the
        credential chain if a file does not contain that Secret.
    endpoint_url
        URL of all services, instead of AWS's own.
    output
        `text` for people, `json` for programs.
    """
    source = source_of(resource, file, name, namespace, aws_credentials, cluster)

    async def main() -> "list[Finding]":
        return await _look(await read_subject(source), endpoint_url)

    found = asyncio.run(main())
    if output == "json":
        _print_json(found)
    else:
        _print_text(found)
    if any(finding.blocks for finding in found):
        sys.exit(1)


async def _look(subject: Subject, endpoint_url: str) -> "list[Finding]":
    from pergola.providers.aws.preflight import check_rules, findings

    if subject.cluster is None:
        print(
            "no Cluster found: assuming IPv4, and skipping the checks against ranges",
            file=sys.stderr,
        )
    async with observed(subject, endpoint_url) as work:
        return [
            *findings(work.wanted, work.snapshot),
            *check_rules(work.wanted, work.snapshot),
        ]


def _print_text(found: "list[Finding]") -> None:
    for finding in found:
        print(f"{'error' if finding.blocks else 'hint'}: {finding}")
        print(f"  {finding.fix}")
    if not any(finding.blocks for finding in found):
        print("the account is ready for the cluster" if not found else "no blocking problems")


def _print_json(found: "list[Finding]") -> None:
    import orjson

    rows = [
        {**finding.cause._asdict(), "fix": finding.fix, "blocks": finding.blocks}
        for finding in found
    ]
    print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
