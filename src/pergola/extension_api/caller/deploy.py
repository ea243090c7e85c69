"""Requests to an extension about a resource (spec 40 §4)."""

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pergola.api.marks import OPERATION, OPERATION_RECONCILE, TIMESTAMP
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
)
from pergola.extension_api.caller.errors import CallerError
from pergola.extension_api.caller.readiness import is_settled
from pergola.extension_api.kinds import ExtensionKind
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.kube.patches import merge_patch
from pergola.runtime.clock import Clock

# The meaning of absent fields. Setting one explicitly to that value would count as a change of an
# immutable field.
_ABSENT_MEANS: Final[dict[str, Any]] = {"class": "shoot", "ipFamilies": ["IPv4"]}


class Request(NamedTuple):
    """A request that was made.

    Attributes:
        timestamp: identifies the request, for waiting.
        obj: the resource as stored.
        is_settled: whether an earlier identical request was carried out, so that there is nothing
            to wait for.
    """

    timestamp: str
    obj: JsonObject
    is_settled: bool = False


async def deploy(
    client: Client,
    kind: ExtensionKind,
    desired: JsonObject,
    clock: Clock,
    *,
    operation: str = OPERATION_RECONCILE,
) -> Request:
    """Create a resource, or replace its spec, and request an operation.

    Args:
        desired: the resource with its name, namespace and complete spec.

    Raises:
        CallerError: the resource is being deleted.
        KubeError: the API server or its webhooks refused.
    """
    key, timestamp = Key.of(desired), timestamp_of(clock.now())
    asking = {OPERATION: operation, TIMESTAMP: timestamp}
    try:
        live = await client.get(kind.gvk, key)
    except NotFound:
        try:
            return Request(timestamp, await client.create(_new(kind, desired, asking)))
        except AlreadyExists:  # created concurrently by another caller
            live = await client.get(kind.gvk, key)
    if deletion_timestamp_of(live) is not None:
        raise CallerError(
            f"{kind.kind} {key} is being deleted: wait until it is gone, then try again"
        )
    return Request(timestamp, await client.patch(kind.gvk, key, _change(live, desired, asking)))


async def deploy_if_needed(
    client: Client,
    kind: ExtensionKind,
    desired: JsonObject,
    live: JsonObject | None,
    clock: Clock,
) -> Request:
    """Deploy a resource like `deploy`, unless an earlier request was identical.

    Nothing is written if that request was carried out, or if the extension has not picked it up
    yet. A failed request is repeated.

    Args:
        live: the resource as just read; None if it does not exist.

    Raises:
        CallerError: the resource is being deleted.
        KubeError: the API server or its webhooks refused.
    """
    if live is None or deletion_timestamp_of(live) is not None or differs(live, desired):
        return await deploy(client, kind, desired, clock)
    marks = annotations_of(live)
    if is_settled(live, clock.now()):
        return Request(marks.get(TIMESTAMP, ""), live, is_settled=True)
    if marks.get(OPERATION) == OPERATION_RECONCILE and TIMESTAMP in marks:
        return Request(marks[TIMESTAMP], live)
    return await deploy(client, kind, desired, clock)


async def ask(
    client: Client, kind: ExtensionKind, key: Key, operation: str, clock: Clock
) -> Request:
    """Request an operation on an existing resource, and change nothing else.

    Raises:
        NotFound: the resource does not exist.
        KubeError: the API server refused.
    """
    timestamp = timestamp_of(clock.now())
    patch = {"metadata": {"annotations": {OPERATION: operation, TIMESTAMP: timestamp}}}
    return Request(timestamp, await client.patch(kind.gvk, key, patch))


def timestamp_of(now: datetime) -> str:
    """Return the timestamp of a request: RFC 3339 in UTC, with nanoseconds."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def replaced_spec(live: JsonObject, desired: JsonObject) -> JsonObject:
    """Return the merge patch that replaces a live spec; both are complete specs.

    An absent field and its explicit default are equivalent: replacing one with the other would
    count as a change of an immutable field.
    """
    patch = merge_patch(live, desired)
    for name, meaning in _ABSENT_MEANS.items():
        if name in patch and (live.get(name) or meaning) == (desired.get(name) or meaning):
            del patch[name]
    return patch


def differs(live: JsonObject, desired: JsonObject) -> bool:
    """Return whether a deployment would change the spec, a label or an annotation of a resource."""
    return (
        bool(replaced_spec(map_at(live, "spec"), map_at(desired, "spec")))
        or not labels_of(desired).items() <= labels_of(live).items()
        or not annotations_of(desired).items() <= annotations_of(live).items()
    )


def _new(kind: ExtensionKind, desired: JsonObject, asking: dict[str, str]) -> JsonObject:
    key = Key.of(desired)
    metadata: JsonObject = {"name": key.name, "annotations": {**annotations_of(desired), **asking}}
    if key.namespace:
        metadata["namespace"] = key.namespace
    if labels_of(desired):
        metadata["labels"] = labels_of(desired)
    return {
        "apiVersion": kind.gvk.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "spec": map_at(desired, "spec"),
    }


def _change(live: JsonObject, desired: JsonObject, asking: dict[str, str]) -> JsonObject:
    metadata: JsonObject = {"annotations": {**annotations_of(desired), **asking}}
    if labels_of(desired):
        metadata["labels"] = labels_of(desired)
    patch: JsonObject = {"metadata": metadata}
    spec = replaced_spec(map_at(live, "spec"), map_at(desired, "spec"))
    return {**patch, "spec": spec} if spec else patch
