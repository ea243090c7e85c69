"""`pergola aws show`: draw the network of a cluster in AWS, with the owner of each part."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws.subject import observed, read_subject, source_of
from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions

if TYPE_CHECKING:
    from pergola.providers.aws.show import Thing

Output = Annotated[Literal["tree", "svg"], Parameter(alias="-o")]
Namespace = Annotated[str, Parameter(alias="-n")]


def show(
    resource: str = "",
    /,
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = "",
    name: str = "",
    namespace: Namespace = "default",
    output: Output = "tree",
    aws_credentials: str = "",
    endpoint_url: str = "",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Draw the network of a cluster in AWS, with the owner of each part.

    Only reads.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    file
        A manifest with an Infrastructure and its status, or - for the standard input. Credentials
        come from a Secret in the same file.
    name
        The same as the positional argument.
    namespace
        Namespace of the Infrastructure.
    output
        `tree` for a terminal, `svg` for a browser.
    aws_credentials
        NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey, or `environment` for AWS's
        default credential chain. The default is the Secret that the Infrastructure names, and the
        credential chain if a file does not contain that Secret.
    endpoint_url
        URL of all services, instead of AWS's own.
    """
    from pergola.providers.aws.show import svg, things, tree

    source = source_of(resource, file, name, namespace, aws_credentials, cluster)

    async def main() -> "Thing":
        async with observed(await read_subject(source), endpoint_url) as work:
            return things(work.wanted, work.snapshot, work.state)

    seen = asyncio.run(main())
    print(svg(seen) if output == "svg" else tree(seen), end="")
