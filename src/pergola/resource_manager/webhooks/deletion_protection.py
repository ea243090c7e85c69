"""Refuses to delete what carries infrastructure, until the deletion is confirmed (spec 12 §14).

Whoever deletes is asked alike: users, garbage collector, namespace controller, dry runs. Bastions
are never protected, and are not sent here (Beyond 16).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final, NamedTuple

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import (
    GroupVersionResource,
    Request,
    Verdict,
    allowed,
    denied,
    errored,
)
from pergola.api import marks
from pergola.api.durations import format_duration
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of
from pergola.kube.errors import KubeError, NotFound
from pergola.resource_manager.webhooks.installation import Installation
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.events import Recorder, Regarding

PATH: Final = "/webhooks/validate-crd-deletion"
CRD_NAME: Final = "crd-deletion-protection.resources.gardener.cloud"
CR_NAME: Final = "cr-deletion-protection.resources.gardener.cloud"

BURST_SECONDS: Final = 2.0
_NAMED_AT_MOST: Final = 3
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
"""All objects of a kind as they are now, by kind, namespace (empty: all) and label selector."""


def registrations(_: Installation) -> list[Registration]:
    """Deletions of labelled CRDs, and of objects of the protected kinds."""
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


class _Doubt(NamedTuple):
    """An object whose deletion is not confirmed, and why."""

    key: Key
    why: str


class DeletionProtection:
    """The handler.

    Args:
        list_live: asks the API server, never a cache.
        recorder: tells of every deletion that passes; nobody is told if None.
        maximum_age: a confirmation that is older, or has no time, does not count; None for any.
    """

    def __init__(
        self,
        list_live: List,
        *,
        recorder: Recorder | None = None,
        clock: Clock | None = None,
        maximum_age: timedelta | None = None,
    ) -> None:
        self._list = list_live
        self._recorder = recorder
        self._clock = clock or SystemClock()
        self._maximum_age = maximum_age
        self._confirmed: dict[tuple[GroupVersionResource, str], float] = {}
        self._asking = asyncio.Lock()

    async def __call__(self, request: Request) -> Verdict:
        """Judges one request, by the steps of spec 12 §14.3."""
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
        return self._single(request, obj)

    def _single(self, request: Request, obj: JsonObject) -> Verdict:
        doubt = self._doubt(obj)
        if doubt:
            return _refused(request, [doubt])
        self._tell(request, obj)
        return allowed(because=f"{marks.CONFIRMATION_DELETION} confirms it")

    async def _collection(self, request: Request) -> Verdict:
        """The API server asks once per object of the collection: all of them, or none."""
        obj = request.old_object
        if obj is not None and (doubt := self._doubt(obj)):
            return _refused(request, [doubt])
        try:
            doubts = await self._doubts(request)
        except NotFound:
            return allowed("object was not found")
        except KubeError as error:
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        if doubts:
            return _refused(request, doubts)
        if obj is not None:
            self._tell(request, obj)
        return allowed(because="all objects of the collection are confirmed")

    async def _doubts(self, request: Request) -> list[_Doubt]:
        """The unconfirmed objects of a collection.

        That there is none is remembered for the rest of the burst: the API server asks again for
        each object (Beyond 14). A refusal ends the burst, and is not remembered.
        """
        asked = (request.resource, request.namespace)
        now = asyncio.get_running_loop().time
        async with self._asking:
            if now() < self._confirmed.get(asked, 0.0):
                return []
            kind = PROTECTED[request.resource]
            gvk = GroupVersionKind(request.resource.group, request.resource.version, kind)
            is_crd = request.resource.resource == _CRDS[2]
            labels = f"{marks.DELETION_PROTECTED}=true" if is_crd else ""
            objects = await self._list(gvk, request.namespace, labels)
            doubts = [doubt for doubt in map(self._doubt, objects) if doubt]
            if not doubts:
                self._confirmed = {asked: now() + BURST_SECONDS} | {
                    key: until for key, until in self._confirmed.items() if until > now()
                }
            return doubts

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
        except (ValueError, TypeError):  # no time, or one without a zone
            return False

    def _tell(self, request: Request, obj: JsonObject) -> None:
        if self._recorder is None or request.dry_run:
            return
        confirmed = annotations_of(obj).get(marks.TIMESTAMP) or "at an unknown time"
        self._recorder.normal(
            Regarding.of({"apiVersion": _api_version(request), "kind": request.kind.kind, **obj}),
            "ConfirmedDeletion",
            f"deletion by {request.user or 'somebody'} passes: it was confirmed {confirmed}",
        )


def _refused(request: Request, doubts: Iterable[_Doubt]) -> Verdict:
    found = list(doubts)
    kind = PROTECTED[request.resource]
    named = "; ".join(f"{kind} {key} {why}" for key, why in found[:_NAMED_AT_MOST])
    more = len(found) - _NAMED_AT_MOST
    return denied(
        f'must have a "{marks.CONFIRMATION_DELETION}" annotation to delete: {named}'
        + (f"; and {more} more" if more > 0 else "")
    )


def _api_version(request: Request) -> str:
    return GroupVersionKind(request.kind.group, request.kind.version, request.kind.kind).api_version
