"""A visitor who signs out sees nothing from then on, also on pages that are open."""

from typing import cast

import pytest

from pergola.api.objects import JsonObject
from pergola.dashboard.access.visitors import Visitors
from pergola.kube.client import Client
from pergola.kube.transport import Transport
from tests.support.cluster_config import cluster_config

pytestmark = pytest.mark.looptime(start=0)


class Reviewer:
    """An API server that accepts every token as that of the user `ann`."""

    async def create(self, obj: JsonObject) -> JsonObject:
        return {**obj, "status": {"authenticated": True, "user": {"username": "ann"}}}


def connect(_: str) -> Client:
    return Client(Transport(cluster_config("https://localhost")))


async def test_signing_out_ends_the_streams_of_a_visitor() -> None:
    visitors = Visitors(cast("Client", Reviewer()), connect)
    streaming = await visitors.of("token")
    assert streaming is not None
    assert await streaming.is_welcome()

    await visitors.forget("token")

    assert not await streaming.is_welcome()
    again = await visitors.of("token")
    assert again is not None
    assert await again.is_welcome()
    await visitors.close()
