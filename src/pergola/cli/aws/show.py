"""`pergola aws show`: the network of a cluster in AWS as a picture: what is where, and whose."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws.asked import asked_at, looked, place_of

if TYPE_CHECKING:
    from pergola.providers.aws.show import Thing

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
    from pergola.providers.aws.show import svg, things, tree

    place = place_of(file, name, namespace, aws_credentials, kubeconfig, context)

    async def main() -> "Thing":
        async with looked(await asked_at(place), endpoint_url) as work:
            return things(work.wanted, work.snapshot, work.state)

    seen = asyncio.run(main())
    print(svg(seen) if output == "svg" else tree(seen), end="")
