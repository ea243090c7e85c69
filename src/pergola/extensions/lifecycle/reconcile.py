"""The numbered steps of spec 40 §2.3, from an object to an outcome.

The steps differ from the spec in one point, without disadvantages for callers: the Cluster is read
before a request to reconcile is removed, so that the request remains while nothing can be done.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import orjson

from pergola.api.bastion_v1alpha1 import BASTION
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    resource_version_of,
    uid_of,
)
from pergola.extension_api.cluster import CLUSTER, FORCE_DELETION, Cluster, MalformedCluster
from pergola.extension_api.errors import ExtensionError, RequeueAfter, codes_of
from pergola.extension_api.kinds import STOPPED_BY_FAILURE, finalizer_of
from pergola.extension_api.predicates import SHOOT_CLASS, Predicate, request_of, snapshot
from pergola.extensions.actuator import Actuator, Context, Status, deadline_of
from pergola.extensions.lifecycle.credentials import protect_secret, release_secret
from pergola.extensions.lifecycle.operation import (
    PROTECTED,
    Operation,
    acceptance,
    completion,
    next_operation,
    waits_for_state,
)
from pergola.extensions.lifecycle.report import Report
from pergola.extensions.lifecycle.status import describe
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, Invalid, KubeError, NotFound, UnknownKind
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.logging import get_logger
from pergola.runtime.retrying import collect_failures

log = get_logger("extension")

_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of the reconciliation of one kind.

    Attributes:
        max_concurrent: the number of resources to reconcile at once.
        timeout: the time limit of one run of an actuator in seconds; 0 for the actuator's own.
        ignore_operation_annotation: whether to process each new generation and each event of a
            Cluster, instead of the callers' requests by annotation.
        classes: the extension classes to serve; `shoot` if empty.
    """

    max_concurrent: int = 5
    timeout: float = 0.0
    ignore_operation_annotation: bool = False
    classes: tuple[str, ...] = (SHOOT_CLASS,)

    def deadline_of(self, actuator: Actuator) -> float:
        """Return the time limit of one run of an actuator, in seconds."""
        return self.timeout or deadline_of(actuator)


class Lifecycle:
    """The reconciler of one kind and type."""

    def __init__(
        self,
        client: Client,
        actuator: Actuator,
        settings: Settings,
        predicate: Predicate,
        clock: Clock,
    ) -> None:
        self._client = client
        self._actuator = actuator
        self._deadline = settings.deadline_of(actuator)
        self._predicate = predicate
        self._clock = clock
        self._gvk = actuator.gvk()
        self._finalizer = actuator.finalizer or finalizer_of(actuator.kind)
        self._begun: set[Key] = set()  # requests that were removed but have no outcome yet

    async def reconcile(self, key: Key) -> Outcome:
        """Reconcile one object."""
        try:
            obj = await self._client.get(self._gvk, key)
            if waits_for_state(obj) or not self._is_desired(key, obj):
                return DONE
            cluster = await self._cluster(obj)
            if self._is_stopped(cluster):
                log.info("the Shoot has failed: nothing is done", object=self._title(key))
                return DONE
            return await self._work(obj, cluster)
        except NotFound:  # deleted, perhaps during the run
            self._begun.discard(key)
            return DONE

    def _is_stopped(self, cluster: Cluster | None) -> bool:
        has_failed = cluster is not None and cluster.shoot is not None and cluster.shoot.is_failed
        return has_failed and self._actuator.kind in STOPPED_BY_FAILURE

    def _is_desired(self, key: Key, obj: JsonObject) -> bool:
        """Return whether a request is pending; an event may be older than its outcome."""
        seen = snapshot(obj)
        return self._predicate.appeared(seen) or (
            key in self._begun and self._predicate.is_responsible(seen)
        )

    async def _cluster(self, obj: JsonObject) -> Cluster | None:
        """Return the Cluster of the object; None if it has none."""
        key = Key.of(obj)
        name = self._actuator.cluster_name(key)
        if snapshot(obj).extension_class != SHOOT_CLASS or not name:
            return None
        try:
            return Cluster.from_object(await self._client.get(CLUSTER, Key("", name)))
        except (KubeError, MalformedCluster) as error:
            if isinstance(error, NotFound | UnknownKind) and not self._actuator.needs_cluster:
                return None
            raise ReconcileError(
                f"{self._title(key)} waits for its Cluster {name}: {error}"
            ) from error

    async def _work(self, obj: JsonObject, cluster: Cluster | None) -> Outcome:
        operation, key = next_operation(obj, self._finalizer), Key.of(obj)
        self._begun.add(key)
        obj = await self._accept(obj, operation)
        if operation is None:
            self._begun.discard(key)
            return DONE
        report = Report(self._client, obj, operation, self._clock)
        await report.begin()
        try:
            fields = await self._act(report, obj, cluster, operation)
            await report.succeed(fields)
        except Exception as error:
            if report.is_over and isinstance(error, KubeError) and not isinstance(error, Invalid):
                raise  # the outcome could not be written: repeat the run
            return await self._failed(report, error)
        if self._actuator.protects_secret and operation not in PROTECTED:
            await release_secret(self._client, obj)
        await self._complete(report.written, obj, operation)
        self._begun.discard(key)
        log.info("done", object=self._title(Key.of(obj)), operation=str(operation))
        return DONE

    async def _accept(self, obj: JsonObject, operation: Operation | None) -> JsonObject:
        """Remove the request, add the finalizer, and return the object as written."""
        metadata = acceptance(obj, operation, self._finalizer)
        if not metadata:
            return obj
        try:
            return await self._patch(obj, metadata)
        except (Conflict, NotFound):
            raise
        except KubeError as error:
            if "finalizers" not in metadata:
                raise
            raise ReconcileError(
                f"{self._title(Key.of(obj))}: failed to add finalizer: {error}"
            ) from error

    async def _act(
        self, report: Report, obj: JsonObject, cluster: Cluster | None, operation: Operation
    ) -> Status | None:
        """Run the actuator until its deadline."""
        if self._actuator.protects_secret and operation in PROTECTED:
            await protect_secret(self._client, obj)
        act = self._action(operation, obj, cluster)
        context = Context(
            client=self._client,
            cluster=cluster,
            namespace=Key.of(obj).namespace,
            clock=self._clock,
            progress=report.progress,
            save=report.save,
        )
        own: JsonObject = orjson.loads(orjson.dumps(obj))  # an actuator may modify it
        try:
            with collect_failures() as failures:
                async with asyncio.timeout(self._deadline) as limit:
                    return await act(context, own)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _interrupted(self._deadline, failures.last) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # This run was not cancelled: the actuator awaited something that was.
            raise ExtensionError("the actuator waited for a task that was cancelled") from None

    def _action(
        self, operation: Operation, obj: JsonObject, cluster: Cluster | None
    ) -> Callable[[Context, JsonObject], Awaitable[Status | None]]:
        actuator = self._actuator
        if operation is Operation.DELETE and self._is_forced(obj, cluster):
            return actuator.force_delete
        return {
            Operation.CREATE: actuator.reconcile,
            Operation.RECONCILE: actuator.reconcile,
            Operation.DELETE: actuator.delete,
            Operation.MIGRATE: actuator.migrate,
            Operation.RESTORE: actuator.restore,
        }[operation]

    def _is_forced(self, obj: JsonObject, cluster: Cluster | None) -> bool:
        """Return whether a deletion is forced: a Bastion by its own annotation, as in Gardener."""
        if self._actuator.kind == BASTION.kind:
            return annotations_of(obj).get(FORCE_DELETION) == "true"
        shoot = cluster.shoot if cluster else None
        return shoot is not None and shoot.needs_force_deletion

    async def _failed(self, report: Report, error: Exception) -> Outcome:
        text = describe(error)
        await report.fail(text, codes_of(error))
        title = self._title(Key.of(report.written))
        if isinstance(error, RequeueAfter):
            log.info("comes back later", object=title, seconds=error.seconds, error=text)
            return Again(error.seconds)
        if not isinstance(error, ExtensionError | KubeError):
            log.error("the actuator failed unexpectedly", object=title, exc_info=error)
        raise ReconcileError(f"{title}: {text}") from None

    async def _complete(
        self, written: JsonObject, worked_on: JsonObject, operation: Operation
    ) -> None:
        """Remove the annotation and finalizers of finished work, despite concurrent writers."""
        request, obj = request_of(worked_on), written
        for attempt in range(_ATTEMPTS):
            metadata = completion(obj, operation, self._finalizer, request)
            if not metadata or uid_of(obj) != uid_of(worked_on):
                return
            try:
                await self._patch(obj, metadata)
            except Conflict:
                if attempt + 1 == _ATTEMPTS:
                    raise
                obj = await self._client.get(self._gvk, Key.of(obj))
            else:
                return

    async def _patch(self, obj: JsonObject, metadata: JsonObject) -> JsonObject:
        """Patch the metadata of exactly this version of the object."""
        precondition = {"resourceVersion": resource_version_of(obj), "uid": uid_of(obj)}
        return await self._client.patch(
            self._gvk, Key.of(obj), {"metadata": {**precondition, **metadata}}
        )

    def _title(self, key: Key) -> str:
        return f"{self._gvk.kind} {key}"


def _interrupted(seconds: float, cause: Exception | None) -> ExtensionError:
    """Return the error of a run that reached its deadline, with the failure it was retrying."""
    text = f"it did not end within {seconds:g} s and was interrupted"
    if cause is None:
        return ExtensionError(text)
    return ExtensionError(f"{text}; it was retrying: {describe(cause)}", *codes_of(cause))
