"""A client that reads from replicas if it has them, and from the API server otherwise."""

from collections.abc import Awaitable, Iterable, Sequence
from typing import Self

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.guards import Permission
from pergola.kube.selectors import matches, parse_selector
from pergola.kube.states import States
from pergola.runtime.caching.packed import metadata_part
from pergola.runtime.caching.replica import Replica


class CachingClient(Client):
    """A client whose reads cost no request if a replica can answer them.

    Its next read sees its own writes. Reads by field, paged reads, and reads of kinds and
    namespaces without a replica send requests; use `live` for decisions that must not depend on the
    progress of a watch.

    Args:
        live: The client that sends requests.
    """

    def __init__(self, live: Client, replicas: Iterable[Replica]) -> None:
        vars(self).update(vars(live))  # shares connections and discovery
        self._live = live
        self._replicas = {(each.gvk, each.namespace): each for each in replicas}

    @property
    def live(self) -> Client:
        """The client that sends a request for every read."""
        return self._live

    def guarded(self, permission: Permission, *, within: float | None = None) -> Self:
        """Return this client with a guard on its writes."""
        live = self._live.guarded(permission, within=within)
        return type(self)(live, self._replicas.values())

    def follow(self, gvk: GroupVersionKind, key: Key) -> States | None:
        """Return the states of an object as its replica receives them; None without a replica."""
        replica = self._replica(gvk, key.namespace)
        if replica is None or not replica.answers() or not replica.is_live:
            return None
        return replica.states(key)

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        """Return the object; raise NotFound if it does not exist."""
        replica = self._replica(gvk, key.namespace)
        if replica is None:
            return await self._live.get(gvk, key, metadata_only=metadata_only)
        if replica.answers(metadata_only=metadata_only) and replica.knows(key):
            found = replica.get(key)
        else:
            found = await self._live.find(gvk, key)
            replica.settle(key, found)
        if found is None:
            raise _not_found(gvk, key)
        return metadata_part(found) if metadata_only else found

    async def list(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
    ) -> list[JsonObject]:
        """Return the objects of a namespace, or of all, that match the selectors."""
        replica = self._replica(gvk, namespace)
        if (
            replica is None
            or fields is not None
            or not replica.answers(metadata_only=metadata_only)
            or not replica.knows()
        ):
            return await self._live.list(
                gvk, namespace, labels=labels, fields=fields, metadata_only=metadata_only
            )
        selector = {} if labels is None else parse_selector(labels)
        found = [each.unpack() for _, each in replica.items() if matches(selector, each.labels)]
        return [metadata_part(obj) for obj in found] if metadata_only else found

    async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Create the object; return it as stored."""
        if dry_run:
            return await self._live.create(obj, dry_run=True)
        return await self._written(*_identity(obj), self._live.create(obj))

    async def update(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Replace the object, if its resourceVersion is still current."""
        return await self._written(*_identity(obj), self._live.update(obj, subresource=subresource))

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Change parts of an object: a map is a merge patch, a list a JSON patch."""
        request = self._live.patch(gvk, key, body, subresource=subresource, manager=manager)
        return await self._written(gvk, key, request)

    async def apply(self, obj: JsonObject, *, manager: str, force: bool = False) -> JsonObject:
        """Apply the object's fields on the server side; `manager` owns them from then on."""
        request = self._live.apply(obj, manager=manager, force=force)
        return await self._written(*_identity(obj), request)

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
    ) -> bool:
        """Ask the server to delete the object; return whether it is gone already."""
        replica = self._replica(gvk, key.namespace)
        if replica is not None:
            replica.begin(key)
        try:
            return await self._live.delete(
                gvk, key, uid=uid, resource_version=resource_version, propagation=propagation
            )
        finally:
            if replica is not None:
                replica.end(key)

    async def _written(
        self, gvk: GroupVersionKind, key: Key, request: Awaitable[JsonObject]
    ) -> JsonObject:
        replica = self._replica(gvk, key.namespace)
        if replica is None:
            return await request
        replica.begin(key)
        try:
            obj = await request
        finally:
            replica.end(key)
        replica.settle(key, obj)
        return obj

    def _replica(self, gvk: GroupVersionKind, namespace: str | None) -> Replica | None:
        return self._replicas.get((gvk, namespace or None))


def _identity(obj: JsonObject) -> tuple[GroupVersionKind, Key]:
    return GroupVersionKind.of(obj), Key.of(obj)


def _not_found(gvk: GroupVersionKind, key: Key) -> NotFound:
    status = {
        "reason": "NotFound",
        "message": f"{gvk.kind} {key} not found",
        "details": {"name": key.name, "group": gvk.group, "kind": gvk.kind},
    }
    return NotFound(404, status)
