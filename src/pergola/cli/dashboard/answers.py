"""The products' answers for the page of the dashboard."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject, Key
    from pergola.dashboard import Answers
    from pergola.kube.client import Client


def answers() -> "Answers":
    """Return the functions that the server calls."""
    from pergola.cli.dashboard.networks import draw_network
    from pergola.cli.dashboard.reasons import why
    from pergola.dashboard import Answers

    return Answers(why=why, flow=_flow, picture=draw_network)


@asynccontextmanager
async def _flow(
    client: "Client", gvk: "GroupVersionKind", key: "Key"
) -> "AsyncGenerator[AsyncIterator[JsonObject]]":
    """Yield the flow of a Garden or an Infrastructure as it runs.

    Raises:
        Unanswered: The kind has no flow, or the tasks cannot be determined.
    """
    from pergola.api.operator_v1alpha1 import GARDEN
    from pergola.cli.dashboard.garden_flow import garden_flow
    from pergola.cli.dashboard.infrastructure_flow import infrastructure_flow
    from pergola.dashboard.server.answers import Unanswered

    if gvk == GARDEN:
        flow = garden_flow(client, key.name)
    elif gvk.kind == "Infrastructure":
        flow = infrastructure_flow(client, gvk, key)
    else:
        raise Unanswered(f"objects of kind {gvk.kind} have no flow")
    async with flow as pictures:
        yield pictures
