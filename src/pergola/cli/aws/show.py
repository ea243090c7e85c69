"""`pergola aws show`: draw the network of a cluster in AWS, with the owner of each part."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.aws.cloud_config import control_plane_of, controllers_data
from pergola.cli.aws.subject import (
    DEFAULT_ACCOUNT,
    DEFAULT_SOURCE,
    Account,
    Source,
    observed,
    read_subject,
)
from pergola.cli.output import show as show_output
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.providers.aws.control_plane.values import Given
    from pergola.providers.aws.show import Thing

Output = Annotated[Literal["tree", "svg", "json", "yaml"], Parameter(alias="-o")]


def show(
    resource: str = "",
    /,
    *,
    source: Source = DEFAULT_SOURCE,
    output: Output = "tree",
    account: Account = DEFAULT_ACCOUNT,
) -> None:
    """Draw the network of a cluster in AWS, with the owner of each part; only reads.

    Ends with what the control plane gets from the network, and why, once there is a status.

    Parameters
    ----------
    resource
        The name of an Infrastructure in a cluster, or infrastructure/NAME as kubectl writes it.
    output
        `tree` for a terminal, `svg` for a browser; `json` or `yaml` for programs.
    """
    from pergola.providers.aws.show import control_plane, svg, things, tree

    async def main() -> "tuple[Thing, Given | None]":
        subject = await read_subject(resource, source, account.aws_credentials)
        async with observed(subject, account.endpoint_url) as work:
            network = things(work.desired, work.snapshot, work.state)
            return network, control_plane_of(subject)

    network, given = asyncio.run(main())
    drawn = network if given is None else network.containing(control_plane(given))
    draw = svg if output == "svg" else tree
    show_output(output, data=_data(network, given), text=lambda: say(draw(drawn), end=""))


def _data(network: "Thing", given: "Given | None") -> "JsonObject":
    return {
        "network": network.data(),
        **({"controlPlane": controllers_data(given)} if given is not None else {}),
    }
