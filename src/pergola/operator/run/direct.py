"""Objects that the operator applies itself: written if they differ, awaited if necessary.

An object that is unchanged since the last run, apart from its status, is not read again:
definitions of kinds are large and numerous.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from typing import Any, Final, TypeVar

import orjson

from pergola.api.kinds import CRD, DEPLOYMENT
from pergola.api.marks import CONFIRMATION_DELETION, is_truthy
from pergola.api.objects import (
    GroupVersionKind,
    Identity,
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    metadata_of,
    resource_version_of,
    uid_of,
)
from pergola.garden.landscape import etcd_objects
from pergola.kube.applied import is_applied
from pergola.kube.client import Client
from pergola.kube.definitions import set_up_storage
from pergola.kube.errors import NotFound, UnknownKind
from pergola.operator.run.listed_kinds import until_listed
from pergola.operator.run.readiness import direct_problem, is_awaited
from pergola.operator.run.roll_out import wait_rolled_out
from pergola.operator.run.waiting import Note, Problem, gone, unnoted, wait_until
from pergola.runtime.clock import Clock

MANAGER: Final = "gardener-operator"
"""The field manager of the objects that the operator applies itself."""

_PROTECTED: Final = "gardener.cloud/deletion-protected"
_AT_ONCE: Final = 8
_SERVED_SECONDS: Final = 60.0
_LISTED: Final = 3
"""The number of cluster-scoped objects of a kind from which one list is cheaper than reads."""
_REVISION: Final = "deployment.kubernetes.io/revision"
"""Written by kube-controller-manager after a Deployment was."""
_OF_EVERY_WRITE: Final = ("resourceVersion", "managedFields")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Applied:
    """An object after it was applied, or found to be in its desired state.

    Attributes:
        state: Everything but its status; see `_state`.
        digest: The digest of the applied object.
        version: Its last known resourceVersion.
        is_ready: Whether it was healthy and rolled out at that version.
    """

    state: str
    digest: bytes
    version: str
    is_ready: bool


class DirectObjects:
    """Writes and awaits objects of the runtime cluster, several at a time."""

    def __init__(self, client: Client, clock: Clock, note: Note = unnoted) -> None:
        self._client = client
        self._clock = clock
        self._note = note
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._applied: dict[Identity, _Applied] = {}
        self._ready: set[Identity] = set()

    async def apply(self, objects: Sequence[JsonObject]) -> None:
        """Apply objects in the given order; consecutive objects of one kind concurrently.

        Kinds defined along with other objects are usable afterwards: the next task may create
        objects of them.

        Raises:
            NotReady: A kind is not served in time.
            KubeError: The API server refused one, or did not answer.
        """
        for gvk, neighbours in groupby(objects, GroupVersionKind.of):
            each = list(neighbours)
            present = await self._present(gvk, [Key.of(obj) for obj in each])
            await _all(self._apply(obj, present.get(Key.of(obj))) for obj in each)
        definitions = [obj for obj in objects if GroupVersionKind.of(obj) == CRD]
        if len(definitions) < len(objects):
            await _all(self._serve(_identity(obj)) for obj in definitions)

    async def wait(self, obj: JsonObject, limit: float) -> None:
        """Wait until an object is healthy and rolled out, if its kind has a rule for that.

        It is not read again if the preceding apply found it so.

        Raises:
            NotReady: It is not ready after `limit` seconds; the text says why.
        """
        identity = _identity(obj)
        if identity in self._ready:
            self._ready.discard(identity)
        elif is_awaited(identity.gvk):
            await self._await(identity, limit)

    async def delete(self, identity: Identity) -> None:
        """Request the deletion of an object.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        with suppress(UnknownKind, NotFound):
            is_definition = identity.gvk == CRD
            live = await self._client.find(*identity, metadata_only=not is_definition)
            if live is not None:
                await self._confirm(identity, live)
                if is_definition:
                    await set_up_storage(self._client, live)
                await self._client.delete(*identity, uid=uid_of(live))

    async def wait_gone(self, identity: Identity, limit: float) -> None:
        """Wait until an object is gone.

        Raises:
            NotReady: It still exists after `limit` seconds.
        """
        with suppress(UnknownKind):
            await self._wait(identity, limit, gone)

    async def _confirm(self, identity: Identity, live: JsonObject) -> None:
        """Confirm the deletion of an object that is protected against accidental deletion."""
        is_protected = identity.gvk == etcd_objects.ETCD or _PROTECTED in labels_of(live)
        if is_protected and not is_truthy(annotations_of(live).get(CONFIRMATION_DELETION)):
            patch = {"metadata": {"annotations": {CONFIRMATION_DELETION: "true"}}}
            await self._client.patch(*identity, patch)

    async def _await(self, identity: Identity, limit: float) -> None:
        if identity.gvk == DEPLOYMENT:
            live = await wait_rolled_out(self._client, self._clock, identity.key, limit, self._note)
        else:
            live = await self._wait(identity, limit, direct_problem(identity.gvk))
        applied = self._applied.get(identity)
        if live is None:
            return
        if identity.gvk == CRD:
            await until_listed(self._client, live, limit)
        if applied is not None:
            version = resource_version_of(live)
            self._applied[identity] = replace(applied, version=version, is_ready=True)

    async def _serve(self, definition: Identity) -> None:
        if definition not in self._ready:
            await self._await(definition, _SERVED_SECONDS)
            self._ready.add(definition)

    async def _present(self, gvk: GroupVersionKind, keys: list[Key]) -> dict[Key, JsonObject]:
        """Return the metadata of those objects that were applied before."""
        known = [key for key in keys if Identity(gvk, key) in self._applied]
        if len(known) >= _LISTED and not any(key.namespace for key in known):
            found = await self._client.list(gvk, metadata_only=True)
        else:
            reads = [self._client.find(gvk, key, metadata_only=True) for key in known]
            found = [obj for obj in await _all(reads) if obj is not None]
        return {Key.of(obj): obj for obj in found}

    async def _apply(self, obj: JsonObject, present: JsonObject | None) -> None:
        identity, digest = _identity(obj), _digest(obj)
        applied = self._applied.get(identity)
        state = None if present is None else _state(present)
        if applied is None or present is None or (applied.state, applied.digest) != (state, digest):
            async with self._slots:
                applied = await self._write(obj, digest)
        elif resource_version_of(present) != applied.version and identity.gvk != CRD:
            # Its status changed. Once a kind is served, it stays served.
            applied = replace(applied, is_ready=False)
        self._applied[identity] = applied
        if applied.is_ready:
            self._ready.add(identity)
        else:
            self._ready.discard(identity)

    async def _write(self, obj: JsonObject, digest: bytes) -> _Applied:
        identity = _identity(obj)
        live = await self._client.find(*identity)
        is_etcd = identity.gvk == etcd_objects.ETCD
        desired = etcd_objects.kept(obj, live) if is_etcd else obj
        if live is None or not is_applied(desired, live, MANAGER):
            if is_etcd:
                desired = etcd_objects.requested(desired, self._clock.now())
            live = await self._client.apply(desired, manager=MANAGER, force=True)
        # Whether pods of a Deployment are terminating is not part of it.
        is_ready = identity.gvk != DEPLOYMENT and direct_problem(identity.gvk)(live) is None
        return _Applied(_state(live), digest, resource_version_of(live), is_ready)

    async def _wait(
        self, identity: Identity, limit: float, problem_of: Problem
    ) -> JsonObject | None:
        return await wait_until(self._client, *identity, problem_of, limit, self._note)


def _identity(obj: JsonObject) -> Identity:
    return Identity(GroupVersionKind.of(obj), Key.of(obj))


def _state(obj: JsonObject) -> str:
    """Return a value that changes with all but the status, and for some kinds with that."""
    metadata = metadata_of(obj)
    if "generation" not in metadata:
        return resource_version_of(obj)
    kept = {name: value for name, value in metadata.items() if name not in _OF_EVERY_WRITE}
    kept["annotations"] = {k: v for k, v in annotations_of(obj).items() if k != _REVISION}
    return blake2b(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _digest(obj: JsonObject) -> bytes:
    return blake2b(orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)).digest()


async def _all(each: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Return all results, or raise the first error after all have ended."""
    outcomes = await asyncio.gather(*each, return_exceptions=True)
    results = []
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
        results.append(outcome)
    return results
