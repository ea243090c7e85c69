"""Objects of any kind on one API server: read, create, change and delete them.

Each call sends a request; use a cache (`pergola.runtime`) for frequent reads.
"""

import asyncio
import copy
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, NamedTuple, Self

import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, Key, metadata_of
from pergola.kube.answers import Question, check_posted, decoded, name_in
from pergola.kube.discovery import Discovery, Resource
from pergola.kube.errors import ApiError, NotFound, WrongAnswer
from pergola.kube.guards import Guard, Permission
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.selectors import SelectorError
from pergola.kube.transport import Observer, Transport, unobserved

PAGE: Final = 500
_MERGE_PATCH: Final = "application/merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"
_APPLY_PATCH: Final = "application/apply-patch+yaml"
_JSON: Final = "application/json"
_REFUSED_BY_WEBHOOK: Final = 'admission webhook "'
METADATA_LIST: Final = (
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)
METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


class ObjectList(NamedTuple):
    """The result of a list, and the resourceVersion from which to watch."""

    items: list[JsonObject]
    resource_version: str


class Client:
    """One API server, as one identity.

    All methods raise the errors of `pergola.kube.errors`: an `ApiError` if the server refused,
    `Unreachable` if it did not answer, `UnknownKind` if it does not serve the kind.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._guard: Guard | None = None
        self.discovery = Discovery(self.get_raw, now=_monotonic)

    @classmethod
    def connect(
        cls,
        config: ClusterConfig,
        *,
        qps: float | None = None,
        burst: int | None = None,
        observe: Observer = unobserved,
    ) -> Self:
        """Return a client for the server of a kubeconfig; the first request connects."""
        return cls(Transport(config, qps=qps, burst=burst, observe=observe))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def trust(self, ca: bytes | None) -> None:
        """Trust another authority from now on; requests and watches in flight continue.

        Args:
            ca: PEM certificates; None for those of the system.
        """
        await self._transport.trust(ca)

    async def close(self) -> None:
        """Close all connections for good; later requests fail."""
        await self._transport.close()

    def guarded(self, permission: Permission, *, within: float | None = None) -> Self:
        """Return this client with a guard on its writes: the same connections and discovery.

        Args:
            permission: called right before each write leaves; its exceptions reach the caller.
                Reads do not need it.
            within: seconds after the permission within which the server carries out a write or
                refuses it, at the price of a round trip; None for no limit. See `Guard`.
        """
        client = copy.copy(self)
        client._guard = Guard(permission, within)  # noqa: SLF001 - of the same class
        return client

    @property
    def live(self) -> "Client":
        """The client that sends a request for every read: this one, unless it reads from copies."""
        return self

    def follow(self, gvk: GroupVersionKind, key: Key) -> "AsyncGenerator[JsonObject | None] | None":
        """Return the states of an object if this client has them without requests, or None."""
        del gvk, key
        return None

    async def resource(self, gvk: GroupVersionKind) -> Resource:
        """Return how the server serves a kind."""
        return await self.discovery.resource(gvk)

    async def get_raw(self, path: str) -> bytes:
        """Return the answer for a path other than an object's, e.g. `/healthz`."""
        return await self._transport.request("GET", path)

    async def find(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject | None:
        """Return the object, or None if it does not exist."""
        try:
            return await self.get(gvk, key, metadata_only=metadata_only)
        except NotFound:
            return None

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        """Return the object.

        Raises:
            NotFound: it does not exist.
            Unreachable: the answer is something else, as from a broken proxy.
        """
        resource = await self.resource(gvk)
        accept = METADATA if metadata_only else _JSON
        path = resource.item(key)
        obj = await self._object(gvk, "GET", path, accept=accept)
        question(resource, path, key.namespace, key.name, metadata_only=metadata_only).check(obj)
        obj["apiVersion"], obj["kind"] = gvk.api_version, gvk.kind
        return obj

    async def list(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
    ) -> list[JsonObject]:
        """Return the objects of a namespace, or of all, that match the selectors.

        They are read in pages of 500, and have `apiVersion` and `kind`. To select all, omit the
        namespace or selector: an empty one is an error.

        Raises:
            InvalidKey: no such namespace can exist.
            SelectorError: a selector is empty.
        """
        items: list[JsonObject] = []
        async for page in self.pages(
            gvk, namespace, labels=labels, fields=fields, metadata_only=metadata_only
        ):
            items += page.items
        return items

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
        """Like `list`, but page by page, for callers that need not hold all objects at once.

        Args:
            page_size: the number of objects per page; a function is called before each page.

        Raises:
            Gone: the list changed too much between two pages; start again.
        """
        resource = await self.resource(gvk)
        query = selectors(labels, fields)
        accept = METADATA_LIST if metadata_only else _JSON
        while True:
            query["limit"] = str(page_size() if callable(page_size) else page_size)
            path = resource.collection(namespace)
            asked = question(
                resource, path, namespace, name_in(fields), metadata_only=metadata_only
            )
            answer = await self._object(gvk, "GET", path, query=query, accept=accept)
            asked.check_list(answer)
            metadata = answer.get("metadata") or {}
            items = answer.get("items") or []
            for item in items:
                item["apiVersion"], item["kind"] = gvk.api_version, gvk.kind
            yield ObjectList(items, metadata.get("resourceVersion", ""))
            del answer, items  # release this page before the next one arrives
            if not metadata.get("continue"):
                return
            query["continue"] = metadata["continue"]

    async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Create the object; return it as stored."""
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        resource = await self.resource(gvk)
        path = resource.collection(key.namespace)
        answer = await self._object(
            gvk,
            "POST",
            path,
            query={"dryRun": "All"} if dry_run else None,
            body=orjson.dumps(obj),
        )
        if key.name or metadata_of(obj).get("generateName"):
            question(resource, path, key.namespace, key.name or None).check(answer)
        else:
            check_posted(answer, obj, path)  # a review, which is not stored
        return answer

    async def create_subresource(
        self, gvk: GroupVersionKind, key: Key, subresource: str, body: JsonObject
    ) -> JsonObject:
        """Post to a subresource, such as `token` of a ServiceAccount; return the answer."""
        resource = await self.resource(gvk)
        path = resource.item(key, subresource)
        answer = await self._object(gvk, "POST", path, body=orjson.dumps(body))
        check_posted(answer, body, path)
        return answer

    async def update(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Replace the object if its resourceVersion is still current."""
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        resource = await self.resource(gvk)
        return await self._write(resource, "PUT", key, subresource, body=orjson.dumps(obj))

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Change parts of an object: a map is a merge patch, a list a JSON patch.

        Args:
            manager: the owner of the changed fields; by default, that of all of our requests.
        """
        resource = await self.resource(gvk)
        return await self._write(
            resource,
            "PATCH",
            key,
            subresource,
            query={"fieldManager": manager} if manager else None,
            body=orjson.dumps(body),
            content_type=_MERGE_PATCH if isinstance(body, dict) else _JSON_PATCH,
        )

    async def apply(self, obj: JsonObject, *, manager: str, force: bool = False) -> JsonObject:
        """Apply the object's fields on the server side; `manager` owns them from then on."""
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        resource = await self.resource(gvk)
        return await self._write(
            resource,
            "PATCH",
            key,
            query={"fieldManager": manager, "force": "true" if force else "false"},
            body=orjson.dumps(obj),
            content_type=_APPLY_PATCH,
        )

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
    ) -> bool:
        """Ask the server to delete the object, which may remain until its finalizers are removed.

        Args:
            uid: delete only this incarnation of the object.
            resource_version: delete only if the object is still in this state.
            propagation: `Background`, `Foreground` or `Orphan`; the kind's default if empty.

        Returns:
            Whether the object is already gone.

        Raises:
            Conflict: `uid` or `resource_version` no longer matches.
        """
        resource = await self.resource(gvk)
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid or resource_version:
            options["preconditions"] = {k: v for k, v in preconditions.items() if v}
        if propagation:
            options["propagationPolicy"] = propagation
        path = resource.item(key)
        answer = await self._object(gvk, "DELETE", path, body=orjson.dumps(options))
        question(resource, path, key.namespace, key.name).check_deletion(answer)
        # The answer is a Status if the object is gone, and the object if it still has finalizers.
        return answer.get("kind") == "Status"

    async def _write(
        self,
        resource: Resource,
        method: str,
        key: Key,
        subresource: str = "",
        *,
        body: bytes,
        query: dict[str, str] | None = None,
        content_type: str = _JSON,
    ) -> JsonObject:
        path = resource.item(key, subresource)
        answer = await self._object(
            resource.gvk, method, path, query=query, body=body, content_type=content_type
        )
        if subresource != "scale":  # a kind of its own
            question(resource, path, key.namespace, key.name).check(answer)
        return answer

    async def _object(
        self,
        gvk: GroupVersionKind,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> JsonObject:
        try:
            answer = await self._transport.request(
                method,
                path,
                query=query,
                body=body,
                content_type=content_type,
                accept=accept,
                guard=None if method == "GET" else self._guard,
            )
        except NotFound as error:
            if not is_missing_kind(error):
                raise
            self.discovery.forget(gvk)
            await self.resource(gvk)
            raise WrongAnswer(f"the answer for {path} is 404, but {gvk} is served") from error
        return decoded(answer, path)

    def stream(
        self, path: str, query: dict[str, str], *, accept: str, silence: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """See `Transport.stream`; used by `pergola.kube.watch`."""
        return self._transport.stream(path, query, accept=accept, silence=silence)


def question(
    resource: Resource,
    path: str,
    namespace: str | None,
    name: str | None,
    *,
    metadata_only: bool = False,
) -> Question:
    """Return the question that a request asks, to which the answer must fit."""
    within = namespace if resource.namespaced else None
    return Question(path, resource.gvk, resource.namespaced, within, name, metadata_only)


def selectors(labels: str | None, fields: str | None) -> dict[str, str]:
    """Return the query parameters of label and field selectors.

    Raises:
        SelectorError: one is empty, and would select everything.
    """
    named = {"labelSelector": labels, "fieldSelector": fields}
    given = {name: text for name, text in named.items() if text is not None}
    if empty := next((name for name, text in given.items() if not text.strip(" ,")), None):
        raise SelectorError(f"{empty} is empty, and would select everything")
    return given


def is_missing_kind(error: ApiError) -> bool:
    """Return whether a 404 means an unserved path rather than a missing object.

    The API server's answer for an unserved path names no object. Neither does the answer of a
    webhook that refuses with 404, but the API server prefixes its text.
    """
    if not isinstance(error, NotFound) or str(error).startswith(_REFUSED_BY_WEBHOOK):
        return False
    details = error.status.get("details")
    return not (isinstance(details, dict) and details.get("name"))


def _monotonic() -> float:
    return asyncio.get_running_loop().time()
