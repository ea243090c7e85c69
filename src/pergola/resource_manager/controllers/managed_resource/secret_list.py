"""The Secrets of a namespace, listed instead of read one by one.

After a start, every ManagedResource reads its Secrets. They are listed page by page, each page when
a Secret that has not arrived yet is needed, so that only few are in memory at a time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, resource_version_of
from pergola.kube.client import Client
from pergola.kube.errors import KubeError

FIRST_PAGE: Final = 25  # a Secret can contain 1 MiB, and a page is read as a whole
LARGEST_PAGE: Final = 100
_PAGE_BYTES: Final = 1024 * 1024
_WAITING_BYTES: Final = 32 * 1024 * 1024


@dataclass(slots=True)
class Space:
    """The memory that all lists share.

    Attributes:
        used: the bytes of all Secrets that wait to be taken.
    """

    most: int = _WAITING_BYTES
    used: int = 0

    @property
    def is_full(self) -> bool:
        """Whether lists must pause."""
        return self.used > self.most


class SecretList:
    """The Secrets of a namespace that are needed; each can be taken once.

    Args:
        needs: whether a Secret will be taken.
    """

    def __init__(
        self, client: Client, namespace: str, needs: Callable[[Key], bool], space: Space
    ) -> None:
        self._needs = needs
        self._space = space
        self._pages = client.pages(SECRET, namespace, page_size=self._page_size)
        self._waiting: dict[Key, tuple[str, JsonObject]] = {}
        self._count = self._bytes = 0
        self._ended = False
        self._lock = asyncio.Lock()

    async def take(self, key: Key) -> tuple[str, JsonObject] | None:
        """Return the resourceVersion and data of a Secret; None if it must be read individually.

        Secrets listed before it wait to be taken; if they become too many, the list pauses.
        """
        async with self._lock:
            while key not in self._waiting and not self._ended:
                if self._space.is_full:
                    break
                await self._read_page()
        found = self._waiting.pop(key, None)
        if found is not None:
            self._space.used -= _size(found[1])
        return found

    @property
    def has_ended(self) -> bool:
        """Whether no further pages are read."""
        return self._ended

    def end(self) -> None:
        """Drop what was not taken."""
        self._ended = True
        self._space.used -= sum(_size(data) for _, data in self._waiting.values())
        self._waiting.clear()

    async def _read_page(self) -> None:
        try:
            page = await anext(self._pages)
        except (StopAsyncIteration, KubeError):
            # after a failure, each Secret is read individually, and reports its problems
            self._ended = True
            return
        if self._ended:
            return  # dropped in the meantime
        for secret in page.items:
            key, data = Key.of(secret), map_at(secret, "data")
            self._count += 1
            self._bytes += _size(data)
            if self._needs(key):
                self._waiting[key] = resource_version_of(secret), data
                self._space.used += _size(data)

    def _page_size(self) -> int:
        """Return the size of the next page: larger if the previous Secrets were small."""
        if not self._count:
            return FIRST_PAGE
        usual = max(1, self._bytes // self._count)
        return max(FIRST_PAGE, min(LARGEST_PAGE, _PAGE_BYTES // usual))


def _size(data: JsonObject) -> int:
    return sum(len(value) for value in data.values())
