"""The objects of one kind in one namespace, read from memory instead of from the API server.

A cache may lag behind the writes of its own process. A replica does not: it stores the answers to
writes, and marks a key as in doubt if the outcome of its last write is unknown, so that the next
read asks the server. Writes of other processes arrive as in any cache: a moment later. Code that
decides by a replica therefore writes with a resourceVersion, with a uid, or idempotently.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.states import States
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.packed import Packed, packed, packed_metadata


class Replica:
    """The objects of one kind in one namespace, or in all.

    Args:
        metadata_only: Keep and serve only metadata.

    Attributes:
        cache: Must be run. Others may subscribe to it.
    """

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        metadata_only: bool = False,
    ) -> None:
        self.gvk = gvk
        self.namespace = namespace
        self._metadata_only = metadata_only
        keep = packed_metadata if metadata_only else packed
        self.cache: Cache[Packed] = Cache(
            client, gvk, keep, namespace=namespace, metadata_only=metadata_only
        )
        self._writes: Counter[Key] = Counter()
        self._doubted: set[Key] = set()
        self._followers: defaultdict[Key, set[asyncio.Event]] = defaultdict(set)
        self.cache.subscribe(self._changed)

    @property
    def is_live(self) -> bool:
        """Whether it follows the server now; False if the kind is not served."""
        return self.cache.served is True and self.cache.is_synced

    def answers(self, *, metadata_only: bool = False) -> bool:
        """Return whether it holds what a read requests: whole objects, or their metadata."""
        return metadata_only or not self._metadata_only

    def knows(self, key: Key | None = None) -> bool:
        """Return whether it can answer for an object, or, for None, for all objects."""
        if not self.is_live:
            return False
        in_doubt = self._doubted | self._writes.keys()
        return key not in in_doubt if key is not None else not in_doubt

    def get(self, key: Key) -> JsonObject | None:
        """Return an object; None if it does not exist."""
        found = self.cache.get(key)
        return None if found is None else found.unpack()

    def items(self) -> Iterator[tuple[Key, Packed]]:
        """Yield all objects; do not hold the iterator across an await."""
        return self.cache.items()

    async def states(self, key: Key) -> States:
        """Yield an object now and after each change, or None while it does not exist."""
        changed = asyncio.Event()
        self._followers[key].add(changed)
        try:
            while True:
                changed.clear()
                yield self.get(key)
                await changed.wait()
        finally:
            self._followers[key].discard(changed)
            if not self._followers[key]:
                del self._followers[key]

    # The outcomes of requests

    def begin(self, key: Key) -> None:
        """Record that a write begins: until it ends, only the server knows the object."""
        self._writes[key] += 1

    def end(self, key: Key) -> None:
        """Record that a write ended; the object is in doubt unless `settle` is called."""
        self._writes[key] -= 1
        if not self._writes[key]:
            del self._writes[key]
        self._doubted.add(key)

    def settle(self, key: Key, obj: JsonObject | None) -> None:
        """Store the server's answer about an object; None if it does not exist."""
        if obj is not None:
            self.cache.observe(obj)
            self._doubted.discard(key)
        elif self.cache.get(key) is None:
            self._doubted.discard(key)
        if self.cache.served is False:
            self.cache.wake()

    def _changed(self, change: Change[Packed]) -> None:
        if change.new is None:
            self._doubted.discard(change.key)
        for follower in self._followers.get(change.key, ()):
            follower.set()
