"""The controller on a real API server, which pytest starts."""

import pytest
from greeting import BOOK, CONFIG_MAP, FINALIZER, GREETING, Greeting, greetings

from pergola.api import JsonObject, Key, finalizers_of, get_condition, map_at, maps_at
from pergola.kube import Client, Invalid
from pergola.runtime import Metrics
from pergola.testing import install_kinds, running, until, until_gone

pytestmark = pytest.mark.asyncio


def a_greeting(namespace: str, to: str = "world") -> JsonObject:
    metadata = {"name": "first", "namespace": namespace}
    return {
        "apiVersion": "example.org/v1",
        "kind": "Greeting",
        "metadata": metadata,
        "spec": {"to": to},
    }


async def test_a_greeting_is_written_repaired_and_removed(
    cluster_client: Client, namespace: str
) -> None:
    client, key, book = cluster_client, Key(namespace, "first"), Key(namespace, BOOK)
    await install_kinds(client, Greeting)
    async with running(greetings(client, Metrics())):
        await client.create(a_greeting(namespace))
        ready = await until(client, GREETING, key, is_ready)
        assert finalizers_of(ready) == [FINALIZER]
        assert map_at(await client.get(CONFIG_MAP, book), "data") == {"first": "world"}

        await client.patch(CONFIG_MAP, key, {"data": {"text": "edited"}})
        await until(client, CONFIG_MAP, key, lambda obj: obj["data"]["text"] == "Hello, world!")

        await client.delete(GREETING, key)
        await until_gone(client, GREETING, key)
        assert map_at(await client.get(CONFIG_MAP, book), "data") == {}


async def test_a_greeting_to_nobody_is_refused(cluster_client: Client, namespace: str) -> None:
    await install_kinds(cluster_client, Greeting)
    with pytest.raises(Invalid, match=r"spec\.to"):
        await cluster_client.create(a_greeting(namespace, to=""))


def is_ready(greeting: JsonObject) -> bool:
    return get_condition(maps_at(greeting, "status", "conditions"), "Ready") is not None
