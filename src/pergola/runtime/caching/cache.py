"""Copies of the objects of one kind, kept up to date by list and watch.

A cache survives everything that ends a watch: `410 Gone`, a restart of the API server, a silent
network, a CRD that is deleted and created again. It lists again and notifies its subscribers of the
differences only. A `keep` function decides what to store of each object, so that a cache of ten
thousand objects may hold ten thousand digests instead (notes on memory: design §2).

"Synced" means live: the first list is complete, and the watch is connected or was within the last
`GRACE_SECONDS`.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypedDict, TypeVar
from weakref import WeakSet

from pergola.api.objects import GroupVersionKind, JsonObject, Key, resource_version_of
from pergola.kube.answers import is_version, number_of
from pergola.kube.client import Client, selectors
from pergola.kube.discovery import Resource, check_namespace
from pergola.kube.errors import (
    ApiError,
    Gone,
    KubeError,
    UnknownKind,
    Unreachable,
    WrongAnswer,
    wait_asked_by,
)
from pergola.kube.watch import WatchEvent, watch
from pergola.runtime.caching.isolation import isolated
from pergola.runtime.clock import monotonic
from pergola.runtime.logging import get_logger

T = TypeVar("T")
log = get_logger("cache")

GRACE_SECONDS: Final = 5.0
# Silence reveals a dead connection, so a watch may last long: each renewal costs a request.
_WATCH_SECONDS: Final = (3000, 4200)
_FIRST_RETRY_SECONDS: Final = 0.1
_LAST_RETRY_SECONDS: Final = 10.0
_UNSERVED_RETRY_SECONDS: Final = 30.0
# After a watch that lasted so long, the pauses begin with the first one again.
_STEADY_SECONDS: Final = 5.0
# Do not log a watch that recovers at the first retry: API servers restart.
_LOGGED_FAILURE: Final = 2


class Change(NamedTuple, Generic[T]):
    """A change of one object: `old` is None if it appeared, `new` if it was deleted.

    `initial` marks the objects of the first list.
    """

    key: Key
    old: T | None
    new: T | None
    initial: bool = False


Subscriber: TypeAlias = Callable[[Change[T]], None]


class _Stored(NamedTuple, Generic[T]):
    version: int
    value: T


class _Selection(TypedDict):
    labels: str | None
    fields: str | None


class Cache(Generic[T]):
    """The objects of one kind on one API server, or those that match the selectors.

    Args:
        keep: returns what to store of an object; it should not hold on to the object itself. If it
            raises, the cache keeps the last state that it could read.
        namespace: only this namespace; all if None.
        random_source: spreads reconnections over time.

    Raises:
        InvalidKey: no such namespace can exist.
        SelectorError: a selector is empty.
    """

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        keep: Callable[[JsonObject], T],
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        random_source: random.Random | None = None,
    ) -> None:
        if namespace is not None:
            check_namespace(gvk, namespace)
        selectors(labels, fields)
        self.gvk = gvk
        self.namespace = namespace
        self._client = client
        self._keep = keep
        self._selection = _Selection(labels=labels, fields=fields)
        self._metadata_only = metadata_only
        self._random = random_source or random.Random()  # noqa: S311 - spreads load, hides nothing
        self._objects: dict[Key, _Stored[T]] = {}
        self._subscribers: list[Subscriber[T]] = []
        self._position = ""
        self._highest = 0
        self._streams = True
        self._retry = _FIRST_RETRY_SECONDS
        self._failures = 0
        self._wake = asyncio.Event()
        self._synced = asyncio.Event()
        self._lost_at: float | None = None
        self.served: bool | None = None
        self._error: KubeError | None = None
        _living.add(self)

    # Reading

    def get(self, key: Key) -> T | None:
        """Return the kept facts about an object, or None if it does not exist."""
        stored = self._objects.get(key)
        return stored.value if stored is not None else None

    def items(self) -> Iterator[tuple[Key, T]]:
        """Yield all keys with the kept facts; do not hold the iterator across an await."""
        return ((key, stored.value) for key, stored in self._objects.items())

    def __len__(self) -> int:
        return len(self._objects)

    def __bool__(self) -> bool:
        # Always true, so that `cache or other` also works with an empty cache.
        return True

    @property
    def is_synced(self) -> bool:
        """Whether reads can be trusted: the list is complete, and the watch is or just was live.

        A kind that the server does not serve counts as synced: it has no objects.
        """
        if self.served is False:
            return True
        if not self._synced.is_set():
            return False
        return self._lost_at is None or monotonic() - self._lost_at < GRACE_SECONDS

    @property
    def problem(self) -> str | None:
        """The reason why the watch last failed; None while it works."""
        return str(self._error) if self._error else None

    @property
    def is_outage(self) -> bool:
        """Whether the watch failed because the API server is unavailable or overloaded."""
        error = self._error
        is_overload = isinstance(error, ApiError) and (error.code >= 500 or error.code == 429)
        return isinstance(error, Unreachable) or is_overload

    @property
    def is_unreachable(self) -> bool:
        """Whether the watch failed because the API server did not answer at all."""
        return isinstance(self._error, Unreachable)

    async def synced(self) -> None:
        """Wait until the first list is complete, or the kind turns out not to be served."""
        await self._synced.wait()

    async def is_behind(self) -> bool:
        """Return whether the server has changes that have not arrived yet; sends a list request.

        For tests that need certainty; in production, the watch delivers all changes in time.

        Raises:
            KubeError: the server cannot be reached.
        """
        if self.served is False:
            return False
        listed: set[Key] = set()
        newest = 0
        pages = self._client.pages(self.gvk, self.namespace, **self._selection, metadata_only=True)
        try:
            async with aclosing(pages):
                async for page in pages:
                    for obj in page.items:
                        listed.add(Key.of(obj))
                        newest = max(newest, number_of(resource_version_of(obj)))
        except UnknownKind:
            pass  # an unserved kind has no objects, and the cache may not have checked yet
        return newest > self._highest or any(key not in listed for key in self._objects)

    # Wiring

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call `subscriber` for each change from now on, and at once for each known object."""
        self._subscribers.append(subscriber)
        for key, stored in list(self._objects.items()):
            self._call(subscriber, Change(key, None, stored.value, initial=True))

    def unsubscribe(self, subscriber: Subscriber[T]) -> None:
        """Stop calling a subscriber."""
        self._subscribers.remove(subscriber)

    @property
    def subscribers(self) -> Sequence[Subscriber[T]]:
        """The subscribers, in order of subscription."""
        return tuple(self._subscribers)

    def observe(self, obj: JsonObject) -> None:
        """Store an object that a request returned, so that the next read sees it.

        If the watch has delivered later changes and the object is not in the cache, it was deleted.
        """
        is_passed = 0 < number_of(resource_version_of(obj)) <= self._highest
        if Key.of(obj) in self._objects or not is_passed:
            self._take(obj)

    def wake(self) -> None:
        """Retry now instead of after the current pause."""
        self._wake.set()

    async def run(self) -> None:
        """Keep the cache up to date until cancelled."""
        while True:
            began, asked, is_wrong = monotonic(), 0.0, False
            try:
                await self._follow()
            except Gone:
                self._position = ""
            except UnknownKind as error:
                self._unserved(error)
                await self._rest(_UNSERVED_RETRY_SECONDS)
                continue
            except WrongAnswer as error:
                self._position = ""  # list again: it may have stood for a change
                self._lost(error)
                is_wrong = True
            except ApiError as error:
                self._lost(error)
                asked = wait_asked_by(error)
            except KubeError as error:
                self._lost(error)
            lasted = monotonic() - began
            if lasted >= _STEADY_SECONDS:
                self._retry = _FIRST_RETRY_SECONDS
            if lasted < 1.0 or asked or is_wrong:
                rest = self._retry * self._random.uniform(0.75, 1.25)
                await self._rest(max(rest, asked))
                self._retry = min(self._retry * 2, _LAST_RETRY_SECONDS)

    # Following the server

    async def _follow(self) -> None:
        """List, unless a resource version is known already, and watch until the watch ends."""
        resource = await self._client.resource(self.gvk)
        if not self._position:
            if self._streams:
                await self._stream(resource)
                return
            await self._list(resource)
            if not self._position:
                return
        async with aclosing(self._watch(resource, initial=False)) as events:
            async for event in events:
                self._event(event)

    async def _stream(self, resource: Resource) -> None:
        """List and watch in one request, if the server supports that."""
        seen: set[Key] = set()
        listed = False
        try:
            async with aclosing(self._watch(resource, initial=True)) as events:
                async for event in events:
                    if listed:
                        self._event(event)
                    elif event.ends_initial_events:
                        listed = True
                        self._complete(seen, resource_version_of(event.object))
                        if not self._position:
                            return
                    elif event.type in ("ADDED", "MODIFIED"):
                        seen.add(Key.of(event.object))
                        self._take(event.object, initial=not self._synced.is_set())
                    elif event.type == "DELETED":
                        # A server that is behind first sends its objects, then their changes.
                        seen.discard(Key.of(event.object))
                        self._drop_deleted(event.object)
        except ApiError as error:
            if listed or error.code not in (400, 422):
                raise
            self._streams = False

    def _watch(self, resource: Resource, *, initial: bool) -> AsyncGenerator[WatchEvent]:
        return watch(
            self._client,
            resource,
            self.namespace,
            **self._selection,
            metadata_only=self._metadata_only,
            resource_version=self._position,
            initial_events=initial,
            timeout_seconds=self._random.randint(*_WATCH_SECONDS),
        )

    async def _list(self, resource: Resource) -> None:
        seen: set[Key] = set()
        version = ""
        pages = self._client.pages(
            resource.gvk, self.namespace, **self._selection, metadata_only=self._metadata_only
        )
        async with aclosing(pages):
            async for page in pages:
                version = page.resource_version
                for obj in page.items:
                    seen.add(Key.of(obj))
                    self._take(obj, initial=not self._synced.is_set())
        if not is_version(version):
            raise WrongAnswer(f"the list of {self.gvk} has no resourceVersion")
        self._complete(seen, version)

    def _complete(self, seen: set[Key], version: str) -> None:
        """Finish a list: objects that it did not contain were deleted.

        If the list cannot be trusted, no position is set, and it must be repeated.
        """
        listed_at = number_of(version)
        if listed_at and listed_at < self._highest:
            # The server went back in time (a restored backup), or one answer was wrong: no version
            # can be compared. The next list decides which objects were deleted.
            log.error("resource versions went back", kind=str(self.gvk))
            self._highest = 0
            for key, stored in self._objects.items():
                self._objects[key] = stored._replace(version=0)
            self._position = ""
            return
        for key in [key for key in self._objects if key not in seen]:
            # An object that we created after the list was taken is newer than the list.
            if self._objects[key].version <= listed_at:
                self._drop(key)
        self._position, self._highest = version, listed_at
        self._live()

    def _event(self, event: WatchEvent) -> None:
        if event.type == "OPENED":
            self._live()
            return
        if event.type == "DELETED":
            self._drop_deleted(event.object)
        elif event.type != "BOOKMARK":
            self._take(event.object)
        self._position = resource_version_of(event.object) or self._position
        self._highest = max(self._highest, number_of(self._position))

    # Storing

    def _take(self, obj: JsonObject, *, initial: bool = False) -> None:
        key, version = Key.of(obj), number_of(resource_version_of(obj))
        stored = self._objects.get(key)
        if stored is not None and 0 < version <= stored.version:
            return
        # Until `keep` can read the object again, the cache holds its last readable state.
        with isolated("keep", self.gvk, key):
            new = self._keep(obj)
            self._objects[key] = _Stored(version, new)
            self._notify(Change(key, stored.value if stored else None, new, initial))

    def _drop_deleted(self, obj: JsonObject) -> None:
        self._drop(Key.of(obj), number_of(resource_version_of(obj)))

    def _drop(self, key: Key, version: int = 0) -> None:
        stored = self._objects.get(key)
        if stored is None or (version and stored.version > version):
            return
        del self._objects[key]
        self._notify(Change(key, stored.value, None))

    def _notify(self, change: Change[T]) -> None:
        for subscriber in self._subscribers:
            self._call(subscriber, change)

    def _call(self, subscriber: Subscriber[T], change: Change[T]) -> None:
        with isolated("subscriber", self.gvk, change.key):
            subscriber(change)

    # State of the watch

    def _live(self) -> None:
        if self._failures >= _LOGGED_FAILURE:
            log.info("watch recovered", kind=str(self.gvk))
        self._failures = 0
        self.served, self._error, self._lost_at = True, None, None
        self._synced.set()

    def _lost(self, error: KubeError) -> None:
        if self._lost_at is None:
            self._lost_at = monotonic()
        self._failures += 1
        self._error = error
        if self._failures == _LOGGED_FAILURE:
            report = log.warning if self.is_outage else log.error
            report("watch failed", kind=str(self.gvk), error=str(error))

    def _unserved(self, error: UnknownKind) -> None:
        """Treat the kind as not served: it has no objects."""
        if self.served is not False:
            log.info("kind is not served", kind=str(self.gvk), error=str(error))
        self.served, self._position, self._lost_at = False, "", None
        for key in list(self._objects):
            self._drop(key)
        self._synced.set()

    async def _rest(self, seconds: float) -> None:
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()


_living: Final = WeakSet[Cache[Any]]()


def cached_objects() -> Counter[GroupVersionKind]:
    """Return how many objects of each kind all caches of this process hold."""
    found = Counter[GroupVersionKind]()
    for cache in _living:
        found[cache.gvk] += len(cache)
    return found
