"""Denial of unconfirmed deletions of objects with infrastructure behind them (spec 12 §14).

Users, garbage collector, namespace controller and dry runs are treated alike. Bastions are never
protected, and are not sent here (Beyond 16).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import (
    GroupVersionResource,
    Request,
    Verdict,
    allowed,
    denied,
    errored,
)
from pergola.admission.webhook import Webhook, sharing
from pergola.api import marks
from pergola.api.durations import format_duration
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, uid_of
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.kube.errors import KubeError, NotFound
from pergola.resource_manager.webhooks.deletion_events import DeletionEvents
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.installation import Installation
from pergola.runtime.clock import Clock, SystemClock

PATH: Final = "/webhooks/validate-crd-deletion"
CRD_NAME: Final = "crd-deletion-protection.resources.gardener.cloud"
CR_NAME: Final = "cr-deletion-protection.resources.gardener.cloud"

BURST_SECONDS: Final = 2.0
_CRDS: Final = ("apiextensions.k8s.io", ("v1beta1", "v1"), "customresourcedefinitions")
_ETCDS: Final = ("druid.gardener.cloud", "v1alpha1", "etcds")
_EXTENSIONS: Final = "extensions.gardener.cloud"
_KINDS: Final = {
    "backupbuckets": "BackupBucket",
    "backupentries": "BackupEntry",
    "containerruntimes": "ContainerRuntime",
    "controlplanes": "ControlPlane",
    "dnsrecords": "DNSRecord",
    "extensions": "Extension",
    "infrastructures": "Infrastructure",
    "networks": "Network",
    "operatingsystemconfigs": "OperatingSystemConfig",
    "selfhostedshootexposures": "SelfHostedShootExposure",
    "workers": "Worker",
}
PROTECTED: Final[dict[GroupVersionResource, str]] = {
    **{
        GroupVersionResource(_CRDS[0], version, _CRDS[2]): "CustomResourceDefinition"
        for version in _CRDS[1]
    },
    GroupVersionResource(*_ETCDS): "Etcd",
    **{
        GroupVersionResource(_EXTENSIONS, "v1alpha1", plural): kind
        for plural, kind in _KINDS.items()
    },
}

List = Callable[[GroupVersionKind, str, str], Awaitable[list[JsonObject]]]
"""Lists the current objects of a kind by namespace (empty for all) and label selector."""


def registrations(_: Installation) -> list[Registration]:
    """Return the entries for labelled CRDs and for objects of the protected kinds."""
    group, versions, plural = _CRDS
    return [
        Registration(
            name=CRD_NAME,
            path=PATH,
            kind="validating",
            rules=(Rule(("DELETE",), (group,), versions, (plural,)),),
            object_selector={"matchLabels": {marks.DELETION_PROTECTED: "true"}},
        ),
        Registration(
            name=CR_NAME,
            path=PATH,
            kind="validating",
            rules=(
                Rule(("DELETE",), (_ETCDS[0],), (_ETCDS[1],), (_ETCDS[2],)),
                Rule(("DELETE",), (_EXTENSIONS,), ("v1alpha1",), tuple(_KINDS)),
            ),
        ),
    ]


def webhooks(config: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the entries for CRDs and for objects; only runtime instances register them."""
    handler = DeletionProtection(
        dependencies.lookups.objects,
        events=dependencies.deletion_events,
        clock=dependencies.clock,
        maximum_age=config.crd_deletion_protection.confirmation_maximum_age,
    )
    installation = dependencies.installation
    is_registered = installation.kind == "runtime"
    return sharing(handler, registrations(installation), is_registered=is_registered)


class _Doubt(NamedTuple):
    """An object whose deletion is not confirmed, and the reason."""

    key: Key
    why: str


_Collection = tuple[GroupVersionResource, str]


class _Burst(NamedTuple):
    """The objects of a confirmed collection that are not reviewed yet.

    Attributes:
        ends: the time on the event loop's clock.
    """

    ends: float
    unanswered: set[tuple[Key, str]]


class DeletionProtection:
    """The handler.

    Args:
        list_live: reads from the API server, never from a cache.
        events: records every allowed deletion; None for no Events.
        maximum_age: older confirmations, and those without a time, do not count; None for any age.
    """

    def __init__(
        self,
        list_live: List,
        *,
        events: DeletionEvents | None = None,
        clock: Clock | None = None,
        maximum_age: timedelta | None = None,
    ) -> None:
        self._list = list_live
        self._events = events
        self._clock = clock or SystemClock()
        self._maximum_age = maximum_age
        self._bursts: dict[_Collection, _Burst] = {}
        self._listing: WeakValueDictionary[_Collection, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, request: Request) -> Verdict:
        """Decide on one request, by the steps of spec 12 §14.3."""
        if request.operation != "DELETE":
            return allowed("operation is not DELETE")
        if request.resource not in PROTECTED:
            return allowed("resource is not deletion-protected")
        obj = request.old_object if request.old_object is not None else request.object
        if not request.name:
            return await self._collection(request)
        if obj is None:
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, "no object found in admission request")
        if not obj.get("kind"):
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, "the object has no kind")
        return await self._single(request, obj)

    async def _single(self, request: Request, obj: JsonObject) -> Verdict:
        doubt = self._doubt(obj)
        if doubt:
            return _refused(request, doubt)
        await self._record(request, obj)
        return allowed(because=f"{marks.CONFIRMATION_DELETION} confirms it")

    async def _collection(self, request: Request) -> Verdict:
        """Decide on one object of a collection: either all of them may be deleted, or none."""
        obj = request.old_object
        if obj is not None and (doubt := self._doubt(obj)):
            return _refused(request, doubt)
        try:
            doubts = await self._doubts(request)
        except NotFound:
            return allowed("object was not found")
        except KubeError as error:
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        if doubts:
            # Its other objects are not named: the caller may not be permitted to list them.
            kind, where = PROTECTED[request.resource], request.namespace
            return denied(
                f'must have a "{marks.CONFIRMATION_DELETION}" annotation to delete: at least one '
                f"{kind}{f' in namespace {where}' if where else ''} has none that is valid"
            )
        if obj is not None:
            await self._record(request, obj)
        return allowed(because="all objects of the collection are confirmed")

    async def _doubts(self, request: Request) -> list[_Doubt]:
        """List the collection and return its unconfirmed objects.

        The API server sends a review for each object of a collection. A list without doubts answers
        all of them, each object once (Beyond 14): an object that is reviewed again belongs to a
        later request, which may find new objects.
        """
        collection = (request.resource, request.namespace)
        lock = self._listing.setdefault(collection, asyncio.Lock())
        async with lock:
            if self._is_answered(collection, request.old_object):
                return []
            kind = PROTECTED[request.resource]
            gvk = GroupVersionKind(request.resource.group, request.resource.version, kind)
            is_crd = request.resource.resource == _CRDS[2]
            labels = f"{marks.DELETION_PROTECTED}=true" if is_crd else ""
            objects = await self._list(gvk, request.namespace, labels)
            doubts = [doubt for doubt in map(self._doubt, objects) if doubt]
            if not doubts:
                self._remember(collection, objects)
                self._is_answered(collection, request.old_object)
            return doubts

    def _is_answered(self, collection: _Collection, obj: JsonObject | None) -> bool:
        """Return whether the last list answers for an object, which it does only once."""
        burst = self._bursts.get(collection)
        if burst is None or obj is None or burst.ends < _now():
            return False
        identity = _identity(obj)
        if identity not in burst.unanswered:
            return False
        burst.unanswered.discard(identity)
        return True

    def _remember(self, collection: _Collection, objects: Iterable[JsonObject]) -> None:
        now = _now()
        self._bursts = {key: burst for key, burst in self._bursts.items() if burst.ends >= now}
        self._bursts[collection] = _Burst(now + BURST_SECONDS, set(map(_identity, objects)))

    def _doubt(self, obj: JsonObject) -> _Doubt | None:
        annotations = annotations_of(obj)
        value = annotations.get(marks.CONFIRMATION_DELETION)
        if value is None:
            return _Doubt(Key.of(obj), "has none")
        if not marks.is_truthy(value):
            return _Doubt(Key.of(obj), f'has the value "{value}" instead of "true"')
        limit = self._maximum_age
        if limit is not None and not self._is_recent(annotations.get(marks.TIMESTAMP), limit):
            age = format_duration(limit)
            return _Doubt(Key.of(obj), f"has one that was not confirmed within the last {age}")
        return None

    def _is_recent(self, timestamp: str | None, limit: timedelta) -> bool:
        try:
            confirmed = datetime.fromisoformat(timestamp or "")
            return self._clock.now() - confirmed <= limit
        except (ValueError, TypeError):  # not a time, or without a time zone
            return False

    async def _record(self, request: Request, obj: JsonObject) -> None:
        if self._events is not None:
            await self._events.record(request, obj)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _identity(obj: JsonObject) -> tuple[Key, str]:
    return Key.of(obj), uid_of(obj)


def _refused(request: Request, doubt: _Doubt) -> Verdict:
    kind = PROTECTED[request.resource]
    return denied(
        f'must have a "{marks.CONFIRMATION_DELETION}" annotation to delete: '
        f"{kind} {doubt.key} {doubt.why}"
    )
