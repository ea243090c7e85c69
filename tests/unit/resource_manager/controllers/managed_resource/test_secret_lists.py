"""Many Secrets are listed page by page, each page only when one of its Secrets is needed."""

from collections.abc import AsyncGenerator, Callable
from typing import cast

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client, ObjectList
from pergola.kube.errors import Gone
from pergola.resource_manager.controllers.managed_resource.secret_list import (
    FIRST_PAGE,
    LARGEST_PAGE,
    SecretList,
    Space,
)
from pergola.resource_manager.responsibility import Responsibility
from pergola.resource_manager.source import Source

NAMESPACE = "garden"


class Server:
    """A server that lists Secrets, and records page sizes; lists may fail."""

    def __init__(self, count: int, size: int = 10, *, fails_after: int | None = None) -> None:
        self._secrets = [secret(number, size) for number in range(count)]
        self._fails_after = fails_after
        self.pages_read: list[int] = []

    async def pages(
        self, gvk: GroupVersionKind, namespace: str, *, page_size: Callable[[], int]
    ) -> AsyncGenerator[ObjectList]:
        """Yield the Secrets in order."""
        left = self._secrets
        while left:
            if len(self.pages_read) == self._fails_after:
                raise Gone(410, {"message": "the continue token is too old"})
            size = page_size()
            self.pages_read.append(size)
            yield ObjectList(left[:size], "9")
            left = left[size:]


def secret(number: int, size: int) -> JsonObject:
    """Return a Secret with data of a size."""
    metadata = {"name": f"s-{number:04}", "namespace": NAMESPACE, "resourceVersion": "5"}
    return {"metadata": metadata, "data": {"a": "x" * size}}


def listing(server: Server, named: int) -> SecretList:
    """Return the list for ManagedResources that name the first Secrets."""
    source = Source(cast("Client", server), Responsibility("resources"))
    for number in range(named):
        source.observe(
            {
                "apiVersion": "resources.gardener.cloud/v1alpha1",
                "kind": "ManagedResource",
                "metadata": {"name": f"r-{number}", "namespace": NAMESPACE, "resourceVersion": "1"},
                "spec": {"secretRefs": [{"name": key(number).name}]},
            }
        )
    return SecretList(source.client, NAMESPACE, source.is_desired_here, Space())


def key(number: int) -> Key:
    """Return the key of a Secret."""
    return Key(NAMESPACE, f"s-{number:04}")


async def test_a_page_is_read_when_a_secret_on_it_is_needed() -> None:
    server = Server(300)
    secrets = listing(server, named=300)
    assert await secrets.take(key(0)) == ("5", {"a": "x" * 10})
    assert await secrets.take(key(FIRST_PAGE - 1)) is not None
    assert server.pages_read == [FIRST_PAGE]
    assert await secrets.take(key(FIRST_PAGE)) is not None
    assert server.pages_read == [FIRST_PAGE, LARGEST_PAGE]


async def test_pages_of_large_secrets_stay_small() -> None:
    server = Server(60, size=100_000)
    assert await listing(server, named=60).take(key(30)) is not None
    assert server.pages_read == [FIRST_PAGE, FIRST_PAGE]


async def test_each_secret_is_yielded_once() -> None:
    secrets = listing(Server(3), named=3)
    assert await secrets.take(key(1)) is not None
    assert await secrets.take(key(1)) is None


async def test_an_unreferenced_secret_is_not_kept() -> None:
    secrets = listing(Server(3), named=2)
    assert await secrets.take(key(2)) is None
    assert await secrets.take(key(1)) is not None


async def test_after_a_failed_list_the_rest_are_read_individually() -> None:
    secrets = listing(Server(100, fails_after=1), named=100)
    assert await secrets.take(key(99)) is None
    assert await secrets.take(key(0)) is not None


async def test_the_list_pauses_while_too_many_secrets_are_buffered() -> None:
    server = Server(60, size=2_000_000)
    secrets = listing(server, named=60)
    assert await secrets.take(key(59)) is None
    assert server.pages_read == [FIRST_PAGE]
