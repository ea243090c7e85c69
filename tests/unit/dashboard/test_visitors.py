"""A visitor who signs out, or signs in too often, sees nothing from then on."""

from typing import cast

import pytest

from pergola.api.objects import JsonObject
from pergola.dashboard.access.visitors import MOST_TOKENS_PER_USER, Visitors
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


async def test_too_many_tokens_of_a_user_end_the_streams_of_the_oldest_one() -> None:
    visitors = Visitors(cast("Client", Reviewer()), connect)
    found = [await visitors.of(f"token-{number}") for number in range(MOST_TOKENS_PER_USER + 1)]
    welcome = [await each.is_welcome() for each in found if each is not None]
    assert welcome == [False] + [True] * MOST_TOKENS_PER_USER
    await visitors.close()
