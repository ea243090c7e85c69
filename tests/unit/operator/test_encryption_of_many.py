"""Rewriting very many objects in virtual time: the requests and their times."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import orjson
import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject
from pergola.kube.client import PAGE, Client
from pergola.kube.errors import Gone, NotFound
from pergola.kube.transport import Transport
from pergola.operator.rotation.encryption.rewrite import KEY_NAME, PER_SECOND, Rewriter
from tests.support.dying import killed_after

pytestmark = pytest.mark.looptime(start=0)

SECRETS: Final = {"name": "secrets", "kind": "Secret", "namespaced": True, "verbs": ["list"]}


def metadata_of(name: str) -> JsonObject:
    return {"namespace": "garden", "name": name, "uid": name, "resourceVersion": "1"}


class ManySecrets(Transport):
    """An API server that has Secrets, and answers each request after a while.

    A list shows the state at its first page, as with etcd, without later changes.

    Attributes:
        labels: The labels of each Secret.
        pages: The number of Secrets on each page.
        patched: The times at which Secrets were patched, in order.
        writes: The number of patches of each Secret.
        deleted: Secrets that are listed, but gone when they are patched.
        expires: The number of the page before which a list expires; 0 for none.
    """

    def __init__(self, count: int) -> None:
        self.labels: dict[str, JsonObject] = {f"s{number}": {} for number in range(count)}
        self.pages: list[int] = []
        self.patched: list[float] = []
        self.writes: Counter[str] = Counter()
        self.deleted: set[str] = set()
        self.expires = 0
        self._lists: list[list[str]] = []

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, **more: Any
    ) -> bytes:
        """Answer a request."""
        if path == "/api/v1":
            return orjson.dumps(
                {"kind": "APIResourceList", "groupVersion": "v1", "resources": [SECRETS]}
            )
        if method == "GET":
            return orjson.dumps(await self._page(query or {}))
        if guard := more["guard"]:
            guard.permit()
        return orjson.dumps(await self._patch(path.rpartition("/")[2], orjson.loads(more["body"])))

    async def _page(self, query: Mapping[str, str]) -> JsonObject:
        await asyncio.sleep(0.5)
        number, _, start = query.get("continue", "").partition(":")
        if not number:
            selected = [name for name in self.labels if self._is_selected(name, query)]
            self._lists.append(selected)
            number, start = str(len(self._lists) - 1), "0"
        elif self.expires and len(self.pages) == self.expires:
            self.expires = 0
            raise Gone(410, {"message": "the list is too old"})
        first, size = int(start), int(query["limit"])
        names = self._lists[int(number)]
        page = names[first : first + size]
        self.pages.append(len(page))
        more = {"continue": f"{number}:{first + size}"} if first + size < len(names) else {}
        items = [{"metadata": metadata_of(name)} for name in page]
        metadata = {"resourceVersion": "1", **more}
        return {"apiVersion": "v1", "kind": "SecretList", "metadata": metadata, "items": items}

    def _is_selected(self, name: str, query: Mapping[str, str]) -> bool:
        label, differs, value = query["labelSelector"].partition("!=")
        found = self.labels[name].get(label)
        return found != value if differs else found is not None

    async def _patch(self, name: str, patch: JsonObject) -> JsonObject:
        self.patched.append(asyncio.get_running_loop().time())
        self.writes[name] += 1
        await asyncio.sleep(0.02)
        if name in self.deleted:
            raise NotFound(404, {"details": {"name": name}})
        self.labels[name] = patch["metadata"]["labels"]
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata_of(name)}


async def test_ten_thousand_secrets_take_twenty_pages_and_a_hundred_seconds() -> None:
    server = ManySecrets(10_000)
    server.deleted = {"s7", "s9999"}

    await Rewriter(Client(server)).label(SECRET, "new")

    assert server.pages == [PAGE] * 20
    assert {*server.writes.values()} == {1}
    assert len(server.writes) == 10_000
    times = server.patched
    assert times[-1] >= 99.9
    in_a_second = int(PER_SECOND)
    pairs = zip(times, times[in_a_second:], strict=False)
    assert all(later - time >= 0.99 for time, later in pairs)


async def test_rewritten_objects_are_neither_listed_nor_written_again() -> None:
    """The operator is killed twice, and a list expires while it is read."""
    server = ManySecrets(5_000)
    client = Client(server)

    async def work(mortal: Client) -> None:
        await Rewriter(mortal).label(SECRET, "new")

    assert await killed_after(1_234, client, work)
    assert server.pages == [PAGE] * 3
    assert await killed_after(1_000, client, work)
    # 5,000 - 1,234 remained: two pages, and a third one for which no write was permitted.
    assert server.pages[3:] == [PAGE] * 3
    server.expires = len(server.pages) + 1
    await work(client)
    # One page before the list expires, and then the remaining pages.
    assert server.pages[6:] == [PAGE, PAGE, PAGE, PAGE, PAGE, 266]

    assert len(server.writes) == 5_000
    assert {*server.writes.values()} == {1}
    assert all(labels == {KEY_NAME: "new"} for labels in server.labels.values())


async def test_the_label_is_removed_only_from_objects_that_have_it() -> None:
    server = ManySecrets(1_200)
    for number in range(700):
        server.labels[f"s{number}"] = {KEY_NAME: "new"}

    await Rewriter(Client(server)).unlabel(SECRET)

    assert server.pages == [PAGE, 200]
    assert {*server.writes.values()} == {1}
    assert len(server.writes) == 700
