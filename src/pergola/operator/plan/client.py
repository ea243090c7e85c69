"""A client that reads a cluster but keeps all writes to itself.

Code of the operator that uses it decides as it would in production, and later reads see its writes.
A wait for something that does not exist yet would never end, so it raises.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import NamedTuple

from pergola.api.kinds import CRD
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    Identity,
    JsonObject,
    Key,
    labels_of,
    map_at,
)
from pergola.kube.client import PAGE, Client, ObjectList
from pergola.kube.discovery import Resource
from pergola.kube.errors import AlreadyExists, KubeError, NotFound, UnknownKind
from pergola.kube.patches import apply_merge_patch
from pergola.kube.selectors import matches, parse_selector, select_name


class NeverSent(KubeError):
    """A write request was about to be sent, which is a bug."""


class WouldWait(KubeError):
    """The code waits for a change of the cluster, which a rehearsal cannot cause."""


class NotServedYet(WouldWait):
    """A kind would be served after its definition is written."""


class Write(NamedTuple):
    """A write that was not sent.

    Attributes:
        before: The object as it was read; None if it did not exist.
        after: The object as the write leaves it, without server-side additions; None if it is
            deleted.
        applied: The object applied as the field manager; None for other writes.
        manager: The field manager of an apply.
    """

    identity: Identity
    before: JsonObject | None
    after: JsonObject | None
    applied: JsonObject | None = None
    manager: str = ""


class Rehearsal(Client):
    """A client whose writes affect only its own reads.

    Args:
        live: A client for the cluster; only its connections are used.
    """

    def __init__(self, live: Client) -> None:
        super().__init__(live._transport)  # noqa: SLF001 - of the same class
        self.discovery = live.discovery
        self._permission = _refuse
        self._overlay = _Overlay()
        self._writes: dict[Identity, Write] = {}

    def assume(self, obj: JsonObject) -> None:
        """Return an object as given from now on, regardless of the cluster."""
        self._overlay.put(Identity(GroupVersionKind.of(obj), Key.of(obj)), obj)

    def taken(self) -> list[Write]:
        """Return the writes since the last call, merged by object."""
        taken, self._writes = self._writes, {}
        return [write for write in taken.values() if write.before or write.after]

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """Return how the server serves a kind.

        Raises:
            NotServedYet: Only a written definition defines it.
        """
        try:
            return await super().resource(gvk)
        except UnknownKind:
            if self._overlay.defines(gvk):
                raise NotServedYet(f"{gvk} would be served after it is defined") from None
            raise

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        """Return the object as the writes so far leave it."""
        identity = Identity(gvk, key)
        if identity not in self._overlay:
            with suppress(NotServedYet):
                return await super().get(gvk, key, metadata_only=metadata_only)
        found = self._overlay.get(identity)
        if found is None:
            details: JsonObject = {"name": key.name}
            raise NotFound(404, {"message": f"{gvk.kind} {key} not found", "details": details})
        return found

    async def pages(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        page_size: int | Callable[[], int] = PAGE,
    ) -> AsyncGenerator[ObjectList]:
        """Yield the objects as the writes so far leave them, including created ones."""
        written = self._overlay.listed(gvk, namespace, labels, fields)
        live = super().pages(
            gvk,
            namespace,
            labels=labels,
            fields=fields,
            metadata_only=metadata_only,
            page_size=page_size,
        )
        try:
            async for page in live:
                known = self._overlay
                left = [obj for obj in page.items if Identity(gvk, Key.of(obj)) not in known]
                yield ObjectList([*written, *left], page.resource_version)
                written = []
        except NotServedYet:
            yield ObjectList(written, "")

    async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Store a new object.

        Raises:
            AlreadyExists: The object exists in the cluster.
        """
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        if await self.find(gvk, key, metadata_only=True) is not None:
            raise AlreadyExists(409, {"message": f"{gvk.kind} {key} already exists"})
        return self._keep(obj, None)

    async def update(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Store an object in place of another."""
        return self._keep(obj, await self.get(GroupVersionKind.of(obj), Key.of(obj)))

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Store an object after a merge patch."""
        if not isinstance(body, dict):
            raise NeverSent(f"a JSON patch of {gvk.kind} {key} cannot be rehearsed")
        live = await self.get(gvk, key)
        return self._keep(apply_merge_patch(live, body), live)

    async def apply(self, obj: JsonObject, *, manager: str, force: bool = False) -> JsonObject:
        """Store an object with the applied fields; lists are replaced as a whole."""
        live = await self.find(GroupVersionKind.of(obj), Key.of(obj))
        after = obj if live is None else apply_merge_patch(live, obj)
        return self._keep(after, live, obj, manager)

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
    ) -> bool:
        """Store the deletion of an object."""
        self._note(Write(Identity(gvk, key), await self.get(gvk, key), None))
        return True

    def stream(
        self, path: str, query: dict[str, str], *, accept: str, silence: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Refuse to watch.

        Raises:
            WouldWait: Always.
        """
        raise WouldWait(f"a watch of {path}")

    def _keep(
        self,
        after: JsonObject,
        before: JsonObject | None,
        applied: JsonObject | None = None,
        manager: str = "",
    ) -> JsonObject:
        identity = Identity(GroupVersionKind.of(after), Key.of(after))
        self._note(Write(identity, before, after, applied, manager))
        return after

    def _note(self, write: Write) -> None:
        self._overlay.put(write.identity, write.after)
        earlier = self._writes.get(write.identity)
        self._writes[write.identity] = write._replace(before=earlier.before) if earlier else write


def _refuse() -> None:
    raise NeverSent("a rehearsal was about to write to a cluster")


class _Overlay:
    """The written objects, layered over those of a cluster."""

    def __init__(self) -> None:
        self._objects: dict[tuple[GroupKind, Key], JsonObject | None] = {}

    def __contains__(self, identity: Identity) -> bool:
        return (identity.gvk.group_kind, identity.key) in self._objects

    def put(self, identity: Identity, obj: JsonObject | None) -> None:
        """Store an object, or its deletion."""
        self._objects[identity.gvk.group_kind, identity.key] = obj

    def get(self, identity: Identity) -> JsonObject | None:
        """Return an object in the requested version; None if it was deleted, or not written."""
        obj = self._objects.get((identity.gvk.group_kind, identity.key))
        return None if obj is None else _as(identity.gvk, obj)

    def listed(
        self, gvk: GroupVersionKind, namespace: str | None, labels: str | None, fields: str | None
    ) -> list[JsonObject]:
        """Return the objects that a list selects."""
        selector = parse_selector(labels) if labels else {}
        return [
            _as(gvk, obj)
            for (kind, key), obj in self._objects.items()
            if kind == gvk.group_kind
            and obj is not None
            and namespace in (None, key.namespace)
            and fields in (None, select_name(key.name))
            and (not selector or matches(selector, labels_of(obj)))
        ]

    def defines(self, gvk: GroupVersionKind) -> bool:
        """Return whether a written definition defines a kind."""
        definitions = self.listed(CRD, None, None, None)
        specs = [map_at(definition, "spec") for definition in definitions]
        found = {(spec.get("group"), map_at(spec, "names").get("kind")) for spec in specs}
        return (gvk.group, gvk.kind) in found


def _as(gvk: GroupVersionKind, obj: JsonObject) -> JsonObject:
    return {**obj, "apiVersion": gvk.api_version, "kind": gvk.kind}
