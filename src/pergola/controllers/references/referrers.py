"""The index of all referrers, of any kind."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple

from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    finalizers_of,
)
from pergola.controllers.references.fields import Identity, Reference
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.index import Index
from pergola.runtime.caching.packed import Packed
from pergola.runtime.caching.view import View


@dataclass(frozen=True)
class Referrer:
    """A kind of object that names Secrets and ConfigMaps.

    Attributes:
        controller: The name of its controller in logs and metrics, such as `garden-reference`.
        references: Returns the references of an object.
        handled_by: The finalizer of the controller that uses the named objects. A referrer that is
            being deleted needs them for as long as it has this finalizer.
        workers: The number of objects that are reconciled at once.
    """

    gvk: GroupVersionKind
    controller: str
    references: Callable[[JsonObject], Iterable[Reference]]
    handled_by: str
    workers: int = 1


class Seen(NamedTuple):
    """The facts about a referrer that decide about finalizers.

    Attributes:
        names: The references in its fields.
        is_protected: Whether it has the finalizer itself.
    """

    names: tuple[Reference, ...]
    is_deleted: bool
    is_handled: bool
    is_protected: bool

    @property
    def holds(self) -> tuple[Reference, ...]:
        """The references that it needs: none once its own controller has released it."""
        return self.names if self.is_handled or not self.is_deleted else ()

    @property
    def is_released(self) -> bool:
        """Whether it needs nothing but still has the finalizer."""
        return self.is_protected and not self.holds


def seen(referrer: Referrer, obj: JsonObject) -> Seen:
    """Return the facts about an object that decide about finalizers."""
    finalizers = finalizers_of(obj)
    return Seen(
        tuple(sorted(set(referrer.references(obj)))),
        is_deleted=deletion_timestamp_of(obj) is not None,
        is_handled=referrer.handled_by in finalizers,
        is_protected=marks.REFERENCE_PROTECTION in finalizers,
    )


class Referrers:
    """The referrers of one kind.

    Attributes:
        objects: The relevant facts about each of them.
    """

    def __init__(self, referrer: Referrer, cache: Cache[Packed]) -> None:
        self.referrer = referrer
        self.objects = View(cache, lambda obj: seen(referrer, obj))
        self._held = Index(self.objects, lambda _, it: {each.identity for each in it.holds})
        self._named = Index(self.objects, lambda _, it: {each.identity for each in it.names})

    def hold(self, identity: Identity) -> bool:
        """Return whether one of them needs an object."""
        return identity in self._held

    def concerned(self, identity: Identity) -> set[Key]:
        """Return the referrers that a change of an object affects.

        They are the referrers that name it, and those that wait for the release of their last
        object.
        """
        waiting = (key for key, it in self.objects.items() if it.is_released)
        return {*self._named.keys(identity), *waiting}

    async def hold_now(self, client: Client, identity: Identity) -> bool:
        """Return whether one of them needs an object, according to the API server.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        try:
            async with aclosing(client.pages(self.referrer.gvk)) as pages:
                async for page in pages:
                    for obj in page.items:
                        if any(it.identity == identity for it in seen(self.referrer, obj).holds):
                            return True
        except UnknownKind:
            pass
        return False


class AllReferrers:
    """The referrers of all kinds."""

    def __init__(self, kinds: Iterable[Referrers]) -> None:
        self.kinds = tuple(kinds)

    def __iter__(self) -> Iterator[Referrers]:
        return iter(self.kinds)

    def hold(self, identity: Identity) -> bool:
        """Return whether any of them needs an object."""
        return any(each.hold(identity) for each in self.kinds)

    async def hold_now(self, client: Client, identity: Identity) -> bool:
        """Return whether any of them needs an object, by requests: a watch may lag.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        for each in self.kinds:
            if await each.hold_now(client, identity):
                return True
        return False

    async def synced(self) -> None:
        """Wait until all of them are known."""
        for each in self.kinds:
            await each.objects.synced()


def indexed(
    table: Mapping[Referrer, Cache[Packed]],
) -> AllReferrers:
    """Return the index for a table of referrers with their caches."""
    return AllReferrers(Referrers(referrer, cache) for referrer, cache in table.items())
