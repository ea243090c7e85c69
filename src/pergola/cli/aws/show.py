"""`pergola aws show`: draw the network of a cluster in AWS, with the owner of each part."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws.subject import (
    DEFAULT_ACCOUNT,
    DEFAULT_SOURCE,
    Account,
    Source,
    observed,
    read_subject,
)
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.providers.aws.show import Thing

Output = Annotated[Literal["tree", "svg"], Parameter(alias="-o")]


def show(
    resource: str = "",
    /,
    *,
    source: Source = DEFAULT_SOURCE,
    output: Output = "tree",
    account: Account = DEFAULT_ACCOUNT,
) -> None:
    """Draw the network of a cluster in AWS, with the owner of each part.

    Only reads.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    output
        `tree` for a terminal, `svg` for a browser.
    """
    from pergola.providers.aws.show import svg, things, tree

    async def main() -> "Thing":
        subject = await read_subject(resource, source, account.aws_credentials)
        async with observed(subject, account.endpoint_url) as work:
            return things(work.desired, work.snapshot, work.state)

    seen = asyncio.run(main())
    say(svg(seen) if output == "svg" else tree(seen), end="")
