"""Reads for explanations, with the caller's permissions: denied reads are recorded and skipped."""

from contextlib import aclosing

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, namespace_of, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Forbidden, InvalidKey, UnknownKind
from pergola.operator.reconcile.explain.reading import EVENT, last_event


class Reader:
    """Reads objects and Events; each object at most once.

    Attributes:
        client: For explanations that read more than individual objects.
        source: Reads the cluster that contains the ManagedResources of objects in this one.
        target: Reads the cluster that contains the objects of ManagedResources in this one.
        unread: One sentence for each kind and place that the caller may not read.
    """

    def __init__(
        self, client: Client, *, source: Client | None = None, target: Client | None = None
    ) -> None:
        self.client = client
        self.source = Reader(source) if source else self
        self.target = Reader(target) if target else self
        self._unread: dict[str, None] = {}
        self._found: dict[tuple[GroupVersionKind, Key, bool], JsonObject | None] = {}

    @property
    def unread(self) -> tuple[str, ...]:
        """The reads that were denied, in the order in which they were needed."""
        found = dict(self._unread)
        for other in {self.source, self.target} - {self}:
            found |= dict.fromkeys(other.unread)
        return tuple(found)

    def note(self, sentence: str) -> None:
        """Record that something could not be read."""
        self._unread[sentence] = None

    async def find(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject | None:
        """Return an object; None if it does not exist, is not served, or may not be read."""
        wanted = (gvk, key, metadata_only)
        if wanted not in self._found:
            self._found[wanted] = await self._read(*wanted)
        return self._found[wanted]

    async def is_missing(self, gvk: GroupVersionKind, key: Key) -> bool:
        """Return whether an object is certain not to exist, without reading its content."""
        found = await self.find(gvk, key, metadata_only=True)
        return found is None and _sentence(gvk, key.namespace) not in self._unread

    async def listed(
        self, gvk: GroupVersionKind, namespace: str | None = None, *, fields: str | None = None
    ) -> list[JsonObject]:
        """Return the objects of a kind; empty if it is not served, or may not be read."""
        try:
            return await self.client.list(
                gvk, namespace, fields=fields, metadata_only=gvk == SECRET
            )
        except Forbidden:
            self.note(_sentence(gvk, namespace or ""))
        except UnknownKind:
            pass
        return []

    async def may_list(self, gvk: GroupVersionKind) -> bool:
        """Return whether the caller may list a kind in all namespaces."""
        pages = self.client.pages(gvk, metadata_only=True, page_size=1)
        try:
            async with aclosing(pages):
                await anext(pages, None)
        except Forbidden:
            self.note(_sentence(gvk, ""))
            return False
        return True

    async def event(self, obj: JsonObject) -> str:
        """Return the last Event about an object, warnings first; empty if there is none."""
        namespace = namespace_of(obj) or "default"
        try:
            return last_event(
                await self.client.list(EVENT, namespace, fields=f"involvedObject.uid={uid_of(obj)}")
            )
        except Forbidden:
            self.note(_sentence(EVENT, namespace))
        except ApiError:
            pass
        return ""

    async def _read(
        self, gvk: GroupVersionKind, key: Key, metadata_only: bool
    ) -> JsonObject | None:
        try:
            return await self.client.find(gvk, key, metadata_only=metadata_only)
        except Forbidden:
            self.note(_sentence(gvk, key.namespace))
        except (InvalidKey, UnknownKind):
            pass
        return None


def _sentence(gvk: GroupVersionKind, namespace: str) -> str:
    where = f" in namespace {namespace}" if namespace else ""
    return f"you may not read {gvk.group_kind} objects{where}"
