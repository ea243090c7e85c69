"""A client that reads from documents, for code that reads a cluster."""

# ruff: noqa: D102 - the methods of a client

from collections.abc import AsyncGenerator, Iterable
from typing import cast

from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of
from pergola.kube.client import Client, ObjectList
from pergola.kube.errors import NotFound
from pergola.kube.selectors import matches, parse_selector


def client_of(documents: Iterable[JsonObject]) -> Client:
    """Return a client for a cluster that has these objects, and can be read only."""
    return cast("Client", Documents([*documents]))


class Documents:
    """The reads of a client; whole objects, even for those who ask for metadata only."""

    def __init__(self, documents: list[JsonObject]) -> None:
        self.documents = documents

    async def find(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject | None:
        return next((d for d in self._of(gvk) if Key.of(d) == key), None)

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        found = await self.find(gvk, key)
        if found is None:
            text = f'{gvk.kind} "{key}" not found'
            raise NotFound(404, {"reason": "NotFound", "message": text})
        return found

    async def list(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
    ) -> list[JsonObject]:
        if fields is not None:
            return []  # only Events are selected by fields, and no cluster has any
        selector = parse_selector(labels or "")
        return [
            document
            for document in self._of(gvk)
            if namespace in (None, Key.of(document).namespace)
            and matches(selector, labels_of(document))
        ]

    async def pages(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        metadata_only: bool = False,
    ) -> AsyncGenerator[ObjectList]:
        yield ObjectList(await self.list(gvk, namespace, labels=labels), "1")

    def _of(self, gvk: GroupVersionKind) -> Iterable[JsonObject]:
        return (d for d in self.documents if GroupVersionKind.of(d).group_kind == gvk.group_kind)
