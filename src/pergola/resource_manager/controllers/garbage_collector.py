"""Deletion of unused immutable ConfigMaps and Secrets (spec 10 §10).

An object is collected only if it is labelled for that, old enough, was unused in two consecutive
runs, is still unused in a final check right before its deletion, and has not changed since that
check (spec 10 B11). Uses are read from annotations and from pod specs, so that a workload without
the annotation keeps the objects it mounts.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pergola.api import marks
from pergola.api.kinds import (
    CONFIG_MAP,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    JOB,
    POD,
    SECRET,
    STATEFUL_SET,
)
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
    namespace_of,
    resource_version_of,
    uid_of,
)
from pergola.api.texts import abridged
from pergola.bundle.references import Reference, annotated_references, references
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, KubeError, NotFound, UnknownKind
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import gathered

log = get_logger("garbage-collector")

NAME: Final = "garbage-collector"
_ALL: Final = "target"
MINIMUM_AGE: Final = timedelta(minutes=10)
SECOND_CHECK_SECONDS: Final = 30.0
_CANDIDATES: Final = (
    ("configmap", CONFIG_MAP),
    ("secret", SECRET),
)
_USERS: Final = (
    DEPLOYMENT,
    STATEFUL_SET,
    DAEMON_SET,
    GroupVersionKind("apps", "v1", "ReplicaSet"),
    JOB,
    CRON_JOB,
    POD,
    GroupVersionKind(marks.GROUP, "v1alpha1", "ManagedResource"),
    GroupVersionKind("monitoring.coreos.com", "v1", "Prometheus"),
)
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller.

    Attributes:
        sync_period: the seconds between two runs; 0 for a single run.
        minimum_age: skip younger objects, because their user may not have been written yet.
        namespaces: the namespaces to collect in; all if empty.
    """

    sync_period: float = 3600.0
    minimum_age: timedelta = MINIMUM_AGE
    namespaces: tuple[str, ...] = ()


def garbage_collector_unit(
    client: Client, settings: Settings, *, metrics: Metrics, clock: Clock
) -> Unit:
    """Return the controller that deletes unused ConfigMaps and Secrets of the target."""
    collector = GarbageCollector(
        client,
        clock,
        sync_period=settings.sync_period,
        namespaces=settings.namespaces,
        minimum_age=settings.minimum_age,
    )
    return Controller(
        NAME,
        collector.reconcile,
        watches=(),
        at_start=[_ALL],
        metrics=metrics,
        deadline=settings.sync_period,
    )


class Use(tuple[str, str, str]):
    """The identity of an object in use: kind (`configmap` or `secret`), namespace and name."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object that may be collected, with the state in which it was checked."""

    gvk: GroupVersionKind
    key: Key
    use: Use
    uid: str
    version: str


class GarbageCollector:
    """The reconciler; its only key stands for the whole target.

    Args:
        namespaces: the namespaces to collect in; all if empty.
        minimum_age: younger objects are skipped, because their user may not have been written yet.
        second_look: the seconds until the second check after a run that found new candidates.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        sync_period: float,
        namespaces: Collection[str] = (),
        minimum_age: timedelta = MINIMUM_AGE,
        second_check: float = SECOND_CHECK_SECONDS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._sync_period = sync_period
        self._namespaces: tuple[str | None, ...] = tuple(namespaces) or (None,)
        self._minimum_age = minimum_age
        self._second_check = min(second_check, sync_period)
        self._suspects: dict[tuple[str, Key], str] = {}

    async def reconcile(self, _: str) -> Outcome:
        """Check the whole target once."""
        unused = await self.unused()
        ripe = [c for c in unused if self._suspects.get((c.use[0], c.key)) == c.uid]
        self._suspects = {(c.use[0], c.key): c.uid for c in unused}
        if ripe:
            await self._collect(ripe)
        if len(ripe) < len(unused):
            return Again(self._second_check)
        return Again(self._sync_period) if self._sync_period else DONE

    async def unused(self) -> list[Candidate]:
        """Return the objects that are old enough and unused now, as reported by a dry run.

        Raises:
            KubeError: a list failed, so the answer is unknown.
        """
        candidates = [c async for c in self._candidates()]
        if not candidates:
            return []
        used = await self._used()
        return [c for c in candidates if c.use not in used]

    async def _candidates(self) -> AsyncGenerator[Candidate]:
        young = self._clock.now() - self._minimum_age
        for kind, gvk in _CANDIDATES:
            async for obj in self._list(
                gvk, labels=f"{marks.GARBAGE_COLLECTABLE}=true", metadata_only=True
            ):
                if _created(obj) <= young:
                    key = Key.of(obj)
                    use = Use((kind, key.namespace, key.name))
                    yield Candidate(gvk, key, use, uid_of(obj), resource_version_of(obj))

    async def _used(self) -> set[Use]:
        used: set[Use] = set()
        for gvk in _USERS:
            try:
                async for obj in self._list(gvk):
                    used.update(uses(obj))
            except UnknownKind:
                continue
        return used

    async def _collect(self, ripe: list[Candidate]) -> None:
        """Check again and delete; the second check sees writes since the first."""
        used = await self._used()
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(candidate: Candidate) -> str | None:
            async with limit:
                return await self._delete(candidate)

        outcomes = await gathered(one(c) for c in ripe if c.use not in used)
        problems = [problem for problem in outcomes if problem]
        if problems:
            named = abridged(problems, separator="; ")
            raise ReconcileError(f"{len(problems)} objects not collected: {named}")

    async def _delete(self, candidate: Candidate) -> str | None:
        try:
            await self._client.delete(
                candidate.gvk,
                candidate.key,
                uid=candidate.uid,
                resource_version=candidate.version,
            )
        except (NotFound, Conflict):
            return None  # gone or changed in the meantime: the next run checks again
        except KubeError as error:
            return f"{candidate.gvk.kind} {candidate.key}: {error}"
        log.info("object collected", object=f"{candidate.gvk.kind} {candidate.key}")
        return None

    async def _list(
        self, gvk: GroupVersionKind, *, labels: str | None = None, metadata_only: bool = False
    ) -> AsyncGenerator[JsonObject]:
        for namespace in self._namespaces:
            pages = self._client.pages(gvk, namespace, labels=labels, metadata_only=metadata_only)
            async with aclosing(pages):
                async for page in pages:
                    for obj in page.items:
                        yield obj


def uses(obj: JsonObject) -> Iterable[Use]:
    """Return the objects that an object uses, from its annotations and its pod spec."""
    namespace = namespace_of(obj)
    found: set[Reference] = annotated_references(annotations_of(obj)) | references(obj)
    for template in _templates(obj):
        found |= annotated_references(annotations_of(template))
    return [Use((reference.kind, namespace, reference.name)) for reference in found]


def _templates(obj: Mapping[str, object]) -> Iterable[JsonObject]:
    yield map_at(obj, "spec", "template")
    yield map_at(obj, "spec", "jobTemplate")
    yield map_at(obj, "spec", "jobTemplate", "spec", "template")


def _created(obj: JsonObject) -> datetime:
    return datetime.fromisoformat(map_at(obj, "metadata")["creationTimestamp"])
