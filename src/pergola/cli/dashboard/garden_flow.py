"""The flow of a Garden, as drawn by the page."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pergola.cli.dashboard.tasks import flow_data

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.kube.client import Client
    from pergola.operator.reconcile.picture import Picture


@asynccontextmanager
async def garden_flow(client: "Client", name: str) -> "AsyncGenerator[AsyncIterator[JsonObject]]":
    """Yield the tasks of a Garden now and after each change, until the Garden is gone.

    Raises:
        Unanswered: The tasks cannot be determined or followed.
    """
    from pergola.cli.garden.runtime_cluster import runtime_template
    from pergola.dashboard.server.answers import Unanswered
    from pergola.garden.landscape.errors import OperatorError
    from pergola.operator.reconcile.picture import following

    try:
        template = await runtime_template(client, None)
        async with following(client, name, template) as pictures:
            yield _data(pictures)
    except OperatorError as error:
        raise Unanswered(str(error)) from None


async def _data(pictures: "AsyncIterator[Picture]") -> "AsyncIterator[JsonObject]":
    async for picture in pictures:
        yield flow_data(picture.tasks, picture.operation, picture.note)
