"""`pergola aws show`: the network of a cluster in AWS as a picture: what is where, and whose."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws_check import Asked, AwsCheckError, from_cluster, from_file

if TYPE_CHECKING:
    from pergola.extensions.aws.show import Thing

Output = Annotated[Literal["tree", "svg"], Parameter(alias="-o")]
Namespace = Annotated[str, Parameter(alias="-n")]


def show(
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)] = "",
    name: str = "",
    namespace: Namespace = "default",
    output: Output = "tree",
    aws_credentials: str = "",
    endpoint_url: str = "",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Show the network of a cluster in AWS: what is where, what is ours and what the user's.

    Only reads.

    Parameters
    ----------
    file
        A manifest with an Infrastructure; - reads it from the standard input. Its status tells
        what was created; a Secret beside it has the credentials.
    name
        An Infrastructure in a cluster, in place of a file.
    namespace
        Its namespace.
    output
        `tree` for a terminal, `svg` for a picture that browsers show.
    aws_credentials
        NAMESPACE/NAME of a Secret with accessKeyID and secretAccessKey, or `environment` for AWS's
        usual chain. Without it the Secret that the Infrastructure names; with a file that does not
        hold it, AWS's usual chain.
    endpoint_url
        Where all services of AWS are, if not at AWS.
    kubeconfig
        The seed, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    from pergola.extensions.aws.show import svg, tree

    if bool(file) == bool(name):
        raise AwsCheckError("give either --file or --name")

    async def main() -> "Thing":
        asked = (
            from_file(file, aws_credentials)
            if file
            else await from_cluster(name, namespace, aws_credentials, kubeconfig, context)
        )
        return await _seen(asked, endpoint_url)

    seen = asyncio.run(main())
    print(svg(seen) if output == "svg" else tree(seen), end="")


async def _seen(asked: Asked, endpoint_url: str) -> "Thing":
    from pergola.api.objects import map_at
    from pergola.cloud.aws import AwsClient
    from pergola.extensions.aws.observe import observe
    from pergola.extensions.aws.request import wanted_of
    from pergola.extensions.aws.show import things
    from pergola.extensions.aws.state import read_state
    from pergola.extensions.cluster import Cluster
    from pergola.flow.errors import sentence_of

    wanted = wanted_of(
        asked.infrastructure, Cluster.from_object(asked.cluster) if asked.cluster else None
    )
    state = read_state(map_at(asked.infrastructure, "status", "state"))
    async with AwsClient(
        wanted.region, credentials=asked.credentials, endpoint_url=endpoint_url
    ) as aws:
        try:
            snapshot = await observe(aws, wanted, state)
        except ExceptionGroup as several:
            raise AwsCheckError(sentence_of(several)) from None
    return things(wanted, snapshot, state)
