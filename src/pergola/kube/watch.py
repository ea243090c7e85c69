"""Watches: the changes of a kind since a resource version, until the server or network ends them.

The cache in `pergola.runtime` reconnects afterwards. A watch requests bookmarks, and a connection
that is silent for 70 seconds counts as dead: the server sends a bookmark every minute, so silence
means that the server is gone.
"""

from collections.abc import AsyncGenerator
from typing import Final, Literal, NamedTuple

from pergola.api.objects import JsonObject, annotations_of
from pergola.kube.answers import EventType, name_in
from pergola.kube.client import METADATA, Client, is_missing_kind, question, selectors
from pergola.kube.discovery import Resource
from pergola.kube.errors import NotFound

SILENCE_SECONDS: Final = 70.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class WatchEvent(NamedTuple):
    """One event of a watch; in a BOOKMARK, only the metadata of `object` is meaningful.

    OPENED comes first and is our own: the server accepted the watch.
    """

    type: Literal["OPENED"] | EventType
    object: JsonObject

    @property
    def ends_initial_events(self) -> bool:
        """Whether this bookmark ends the list part of a streaming list."""
        return annotations_of(self.object).get(INITIAL_EVENTS_END) == "true"


async def watch(
    client: Client,
    resource: Resource,
    namespace: str | None = None,
    *,
    labels: str | None = None,
    fields: str | None = None,
    metadata_only: bool = False,
    resource_version: str = "",
    initial_events: bool = False,
    timeout_seconds: int,
) -> AsyncGenerator[WatchEvent]:
    """Yield changes until the server ends the watch (after `timeout_seconds` at most).

    Args:
        resource_version: yield the changes after this version.
        initial_events: start with all existing objects as ADDED events and a bookmark (a streaming
            list) instead of at `resource_version`.

    Raises:
        Gone: `resource_version` is too old: list again.
        ApiError: the server refused: 400 or 422 if it does not support streaming lists, NotFound if
            it does not serve the kind (any longer).
        Unreachable: the connection failed, went silent or sent something other than events about
            the kind.
    """
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_seconds),
    } | selectors(labels, fields)
    if initial_events:
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    else:
        query["resourceVersion"] = resource_version
    accept = METADATA if metadata_only else "application/json"
    path = resource.collection(namespace)
    asked = question(resource, path, namespace, name_in(fields), metadata_only=metadata_only)
    try:
        async with client.stream(path, query, accept=accept, silence=SILENCE_SECONDS) as lines:
            yield WatchEvent("OPENED", {})
            async for line in lines:
                yield WatchEvent(*asked.event(line))
    except NotFound as error:
        if is_missing_kind(error):
            # The kind was removed, or added after discovery: discover again.
            client.discovery.forget(resource.gvk)
        raise
