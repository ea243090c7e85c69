"""The cluster with the managed objects."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from pergola.api.kinds import CRD
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    namespace_of,
    resource_version_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import (
    InvalidKey,
    KubeError,
    NotFound,
    Unauthorized,
    UnknownKind,
    is_outage,
)
from pergola.resource_manager.target.autoscalers import HPA, Autoscalers
from pergola.resource_manager.target.describers import Describers
from pergola.resource_manager.target.observed import Observed, TargetChange, keeper
from pergola.resource_manager.target.pods import Pods
from pergola.resource_manager.target.watches import Watched, Watches
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.unit import Unsynced, unsynced
from pergola.runtime.controlling.watches import Events


class Target:
    """Managed objects; each kind is watched once it is first needed.

    Args:
        managed_by: the value of the `managed-by` label that marks our objects.
        namespaces: the namespaces to watch namespaced kinds in; all if empty. Objects elsewhere are
            read directly.
        is_here: whether objects with an origin are handled here; changes of others are ignored.

    Attributes:
        objects: the changes of managed objects of watched kinds.
        pods: the pods of managed workloads.
        autoscalers: the autoscalers of workloads.
        describers: the ManagedResources that describe an object.
    """

    name = "target"
    is_idle = True

    def __init__(
        self,
        client: Client,
        *,
        managed_by: str,
        namespaces: Collection[str] = (),
        is_here: Callable[[str], bool],
    ) -> None:
        self.client = client
        self._is_here = is_here
        self.objects: Events[TargetChange] = Events()
        self._watches = Watches(client, managed_by=managed_by, namespaces=namespaces)
        self.pods = Pods(self._watches)
        self.autoscalers = Autoscalers(self._watches)
        self.describers = Describers()
        self._kinds: dict[GroupVersionKind, Watched[Observed]] = {}
        self._needs: dict[Key, frozenset[GroupVersionKind]] = {}
        self._crds: Cache[str] | None = None

    async def run(self) -> None:
        """Run watches as they are needed, until cancelled."""
        await self._watches.run()

    async def synced(self) -> None:
        """Return at once: nothing is watched before a controller needs it."""

    def caches(self) -> Iterator[Cache[Observed]]:
        """Yield the caches of all watched kinds."""
        for watched in self._kinds.values():
            yield from watched.caches

    @property
    def unsynced(self) -> list[Unsynced]:
        """The watches that are not live, each with the reason."""
        return unsynced(self.caches())

    def unwatched(self, gvk: GroupVersionKind) -> str | None:
        """Return why the target refuses to let a kind be watched; None if it is watched.

        The reason is a single line. A target that cannot be reached at all is no reason.
        """
        for cache in self._of(gvk):
            if cache.problem and not cache.is_synced and not cache.is_unreachable:
                return " ".join(cache.problem.split())
        return None

    def unwatched_kinds(self) -> Iterator[GroupVersionKind]:
        """Yield the kinds of objects that cannot be watched; see `unwatched`."""
        return (gvk for gvk in self._kinds if self.unwatched(gvk))

    def need(self, resource: Key, kinds: Iterable[GroupVersionKind]) -> None:
        """Record which kinds a ManagedResource mentions; none once it is gone.

        A watch that does not work ends once no ManagedResource mentions its kind.
        """
        before = self._needs.pop(resource, frozenset())
        if needed := frozenset(kinds):
            self._needs[resource] = needed
        for gvk in before - needed:
            if not any(gvk in others for others in self._needs.values()):
                self._end_if_broken(gvk)

    def _end_if_broken(self, gvk: GroupVersionKind) -> None:
        caches = self._of(gvk)
        if all(cache.problem is None for cache in caches):
            return
        del self._kinds[gvk]
        for cache in caches:
            self._watches.stop(cache)

    async def watch(self, gvk: GroupVersionKind) -> None:
        """Watch the kind, unless it is watched already; wait briefly for the first list.

        Raises:
            UnknownKind: the target does not serve the kind.
        """
        if not gvk.kind or not gvk.version:
            return
        if gvk not in self._kinds:
            await self._start(gvk)
        await self._kinds[gvk].listed()

    async def _start(self, gvk: GroupVersionKind) -> None:
        try:
            resource = await self.client.resource(gvk)
        except UnknownKind:
            self._follow_crds()
            raise
        if gvk not in self._kinds:
            self._kinds[gvk] = self._watches.make(
                gvk, keeper(gvk, self._is_here), self._notifier(gvk), namespaced=resource.namespaced
            )

    def seen(self, gvk: GroupVersionKind, key: Key) -> Observed | None:
        """Return the cached object; None is only meaningful if `covers` holds."""
        for cache in self._of(gvk):
            found = cache.get(key)
            if found is not None:
                return found
        return None

    def covers(self, gvk: GroupVersionKind, key: Key) -> bool:
        """Return whether the watch of the kind is live and covers the object, if it is labelled."""
        return any(
            cache.is_synced and cache.served and cache.namespace in (None, key.namespace)
            for cache in self._of(gvk)
        )

    async def answers(self) -> bool:
        """Return whether the API server answers at all, even if one of its API groups does not."""
        try:
            await self.client.get_raw("/version")
        except KubeError as error:
            return not is_outage(error) and not isinstance(error, Unauthorized)
        return True

    async def live(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        """Read the object from the server; None if it does not exist, or cannot be read."""
        try:
            return await self.client.get(gvk, key)
        except (InvalidKey, NotFound, UnknownKind):
            return None

    def observe(self, obj: JsonObject) -> None:
        """Store the result of a write, so that the next read sees the write."""
        gvk = GroupVersionKind.of(obj)
        if gvk.group_kind == HPA.group_kind:
            self.autoscalers.observe(obj)
        if not self._watches.is_ours(labels_of(obj)):
            return
        for cache in self._of(gvk):
            if cache.namespace in (None, namespace_of(obj)):
                cache.observe(obj)

    def _of(self, gvk: GroupVersionKind) -> Sequence[Cache[Observed]]:
        watched = self._kinds.get(gvk)
        return watched.caches if watched is not None else ()

    def _notifier(self, gvk: GroupVersionKind) -> Callable[[Change[Observed]], None]:
        def notify(change: Change[Observed]) -> None:
            states = (change.old, change.new)
            if any(self._is_here(seen.origin) for seen in states if seen is not None):
                self.objects.notify(TargetChange(gvk, change))

        return notify

    # Kinds that appear and disappear

    def _follow_crds(self) -> None:
        """Watch CRDs once a kind is missing, to notice when it appears."""
        if self._crds is None:
            self._crds = Cache(self.client, CRD, resource_version_of, metadata_only=True)
            self._crds.subscribe(self._crd_changed)
            self._watches.start(self._crds)

    def _crd_changed(self, change: Change[str]) -> None:
        group = change.key.name.partition(".")[2]
        for gvk, watched in self._kinds.items():
            if gvk.group == group:
                self.client.discovery.forget(gvk)
                for cache in watched.caches:
                    cache.wake()
