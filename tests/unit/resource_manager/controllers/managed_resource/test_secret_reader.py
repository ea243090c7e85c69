"""Which Secrets are listed, for how long they are kept, and for whom."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable
from typing import cast

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client, ObjectList
from pergola.kube.errors import Gone
from pergola.resource_manager.controllers.managed_resource.secrets import SecretReader
from pergola.resource_manager.responsibility import Responsibility
from pergola.resource_manager.source import Source

CLASS = "seed"


class Server:
    """A server with Secrets, which counts requests for them.

    Attributes:
        requests: the number of lists and reads.
        fails: whether lists fail.
    """

    def __init__(self) -> None:
        self.secrets: dict[Key, JsonObject] = {}
        self.requests = 0
        self.fails = False

    async def pages(
        self, _: GroupVersionKind, namespace: str, *, page_size: Callable[[], int]
    ) -> AsyncGenerator[ObjectList]:
        """Yield the Secrets of a namespace."""
        if self.fails:
            self.requests += 1
            raise Gone(410, {"message": "too old"})
        left = [each for key, each in self.secrets.items() if key.namespace == namespace]
        while left:
            self.requests += 1
            size = page_size()
            yield ObjectList(left[:size], "9")
            left = left[size:]

    async def get(self, _: GroupVersionKind, key: Key) -> JsonObject:
        """Return one Secret."""
        self.requests += 1
        return self.secrets[key]


class Site:
    """A source with a reader of class `seed`."""

    def __init__(self) -> None:
        self.server = Server()
        self.source = Source(cast("Client", self.server), Responsibility(CLASS))
        self.reader = SecretReader(self.source)

    def add(self, namespace: str, count: int, resource_class: str = CLASS) -> list[Key]:
        """Add ManagedResources of a class, each with a Secret; return the keys of all."""
        keys = [Key(namespace, f"{resource_class}-{number}") for number in range(count)]
        for key in keys:
            metadata: JsonObject = {"name": key.name, "namespace": namespace, "uid": str(key)}
            metadata["resourceVersion"] = "1"
            data = {"a": base64.b64encode(b"x" * 100).decode()}
            secret = {"metadata": metadata, "data": data}
            self.server.secrets[key] = secret
            self.source.secrets.observe(secret)
            spec: JsonObject = {"class": resource_class, "secretRefs": [{"name": key.name}]}
            self.source.observe({"metadata": dict(metadata), "spec": spec})
        return keys

    def remove(self, keys: list[Key]) -> None:
        """Remove ManagedResources."""
        (cache,) = self.source.resources
        for key in keys:
            cache._drop(key)
            self.reader.forget(key.namespace)

    @property
    def state(self) -> tuple[int, int, int]:
        """The numbers of waiting Secrets, their bytes, and lists."""
        held = vars(self.reader)
        waiting = sum(len(vars(each)["_waiting"]) for each in held["_lists"].values())
        return waiting, held["_space"].used, len(held["_lists"])


async def test_a_restart_reads_a_page_for_each_hundred_secrets() -> None:
    site = Site()
    for key in site.add("garden", 425):
        await site.reader.read(key)
    assert site.server.requests == 5
    assert site.state[:2] == (0, 0)


async def test_secrets_of_other_classes_are_neither_counted_nor_kept() -> None:
    site = Site()
    ours = site.add("shoot", 30)
    site.add("shoot", 30, "other")
    for key in ours:
        await site.reader.read(key)
    assert site.state[:2] == (0, 0)
    few = Site()
    few.add("shoot", 30, "other")
    for key in few.add("shoot", 15):
        await few.reader.read(key)
    assert few.server.requests == 15


async def test_secrets_that_were_read_are_not_listed_again() -> None:
    site = Site()
    for number in range(1, 60):
        for key in site.add("shoot", number)[-1:]:  # one after another, as they are created
            await site.reader.read(key)
    assert site.server.requests == 59
    assert site.state[:2] == (0, 0)


async def test_a_failed_list_is_not_repeated_for_each_secret() -> None:
    site = Site()
    site.server.fails = True
    for key in site.add("shoot", 60):
        await site.reader.read(key)
    assert site.server.requests == 61


@pytest.mark.looptime
async def test_what_nobody_takes_is_dropped_after_a_while() -> None:
    site = Site()
    first, *_ = site.add("shoot", 60)
    await site.reader.read(first)
    assert site.state[0] > 0
    await asyncio.sleep(61)
    assert site.state == (0, 0, 0)


async def test_a_namespace_is_forgotten_with_its_last_reader() -> None:
    site = Site()
    keys = site.add("shoot", 60)
    await site.reader.read(keys[0])
    site.remove(keys)
    assert site.state == (0, 0, 0)
    assert vars(site.reader)["_read"] == vars(site.source)["_desired"] == {}


async def test_all_lists_share_one_limit() -> None:
    site = Site()
    space = vars(site.reader)["_space"]
    space.most = 1000
    for namespace in ("one", "two", "three"):
        first, *_ = site.add(namespace, 60)
        await site.reader.read(first)
    waiting, size, lists = site.state
    assert lists == 3
    assert waiting == 24  # one page: then every list pauses
    assert size == space.used


@pytest.mark.parametrize("state", [{"ignored": True}, {"deleting": True}])
async def test_secrets_that_no_run_reads_are_not_kept(state: dict[str, bool]) -> None:
    site = Site()
    idle = site.add("shoot", 10)
    ours = site.add("shoot", 40)[10:]
    for key in idle:
        metadata: JsonObject = {"name": key.name, "namespace": key.namespace, "uid": str(key)}
        metadata["resourceVersion"] = "2"
        if "ignored" in state:
            metadata["annotations"] = {"resources.gardener.cloud/ignore": "true"}
        else:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec: JsonObject = {"class": CLASS, "secretRefs": [{"name": key.name}]}
        site.source.observe({"metadata": metadata, "spec": spec})
    for key in ours:
        await site.reader.read(key)
    assert site.state[:2] == (0, 0)
