"""The external manager: fills InfraClusters from networks that exist (spec 50 §5).

It handles InfraClusters whose annotation has its own name, and no others. It never creates, changes
or deletes what a network consists of; when an InfraCluster goes, nothing is left to be done.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pergola.api.cluster_api import CLUSTER, RELEASE_FINALIZERS, SOURCE
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    map_at,
    metadata_of,
    name_of,
    resource_version_of,
)
from pergola.externally_managed.contract import Contract, endpoint_of
from pergola.externally_managed.description import Network
from pergola.externally_managed.mapping import infrastructure_reference, owner_cluster
from pergola.externally_managed.ownership import MANAGER, decide_fields, owned_fields
from pergola.externally_managed.predicate import is_paused, manager_of
from pergola.externally_managed.sources import Source, SourceProblem, source_object
from pergola.externally_managed.status import (
    CONFLICT,
    INCOMPLETE,
    WAITING_FOR_CLUSTER,
    Outcome,
    paused_patch,
    status_patch,
)
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling import controller as runtime
from pergola.runtime.controlling.controller import DONE, Again, Controller
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("infra-manager")

NAME: Final = "pergola"
RESYNC_SECONDS: Final = 600.0
_PLAIN: Final = "plain"


@dataclass(frozen=True, slots=True)
class Settings:
    """What an external manager is responsible for.

    Attributes:
        name: the value of the annotation on InfraClusters that are its own.
        namespace: only InfraClusters of it; of all namespaces if empty.
    """

    name: str = NAME
    namespace: str = ""
    workers: int = 5
    resync_seconds: float = RESYNC_SECONDS


@dataclass(frozen=True, slots=True)
class Managed:
    """A kind of InfraCluster, and how it is read."""

    gvk: GroupVersionKind
    contract: Contract
    finalizers: tuple[str, ...] = field(default=())


def external_manager(
    client: Client,
    managed: Managed,
    sources: Mapping[str, Source],
    settings: Settings,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """The manager of one kind.

    Args:
        sources: by the first part of the annotation `infrastructure.pergola.dev/source`; what
            describes networks in ConfigMaps and Secrets is under `plain`.
    """
    objects = Cache(client, managed.gvk, _own, namespace=settings.namespace or None)
    clusters = Cache(client, CLUSTER, _own, namespace=settings.namespace or None)
    described = Index(objects, lambda _, obj: filter(None, [source_object(obj)]))
    reconciler = ExternalManager(client, managed, sources, settings, objects, clusters, clock)
    controller = Controller(
        f"infra-manager-{managed.gvk.kind.lower()}",
        reconciler.reconcile,
        workers=settings.workers,
        metrics=metrics,
        deadline=180.0,
    )
    objects.subscribe(lambda change: controller.queue.add(change.key))

    def on_cluster(change: Change[JsonObject]) -> None:
        for cluster in filter(None, (change.old, change.new)):
            reference = infrastructure_reference(cluster)
            if reference and reference[0] == managed.gvk.group_kind:
                controller.queue.add(reference[1])

    clusters.subscribe(on_cluster)
    described_by = []
    for gvk in (CONFIG_MAP, SECRET):
        versions = Cache(
            client,
            gvk,
            resource_version_of,
            namespace=settings.namespace or None,
            metadata_only=True,
        )

        def on_source(change: Change[str], gvk: GroupVersionKind = gvk) -> None:
            for key in list(described.keys((gvk, change.key))):
                controller.queue.add(key)

        versions.subscribe(on_source)
        described_by.append(versions)
    return Unit(caches=[objects, clusters, *described_by], controllers=[controller])


class ExternalManager:
    """The reconciler of one kind."""

    def __init__(
        self,
        client: Client,
        managed: Managed,
        sources: Mapping[str, Source],
        settings: Settings,
        objects: Cache[JsonObject],
        clusters: Cache[JsonObject],
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._managed = managed
        self._sources = sources
        self._settings = settings
        self._objects = objects
        self._clusters = clusters
        self._clock = clock or SystemClock()

    async def reconcile(self, key: Key) -> runtime.Outcome:
        """One look at an InfraCluster and its network."""
        obj = self._objects.get(key)
        if obj is None or manager_of(obj) != self._settings.name:
            return DONE
        if deletion_timestamp_of(obj) is not None:
            await self._release(obj)
            return DONE
        owner = owner_cluster(obj)
        cluster = self._clusters.get(owner) if owner else None
        if is_paused(obj, cluster):
            await self._write_status(
                obj, paused_patch(obj, self._managed.contract, self._clock.now())
            )
            return DONE
        if cluster is None:
            text = f"Cluster {owner} does not exist yet" if owner else "no Cluster refers to it yet"
            await self._report(obj, Outcome(WAITING_FOR_CLUSTER, [text]))
            return DONE
        await self._fill(obj)
        return Again(self._settings.resync_seconds)

    async def _fill(self, obj: JsonObject) -> None:
        try:
            network = await self._source(obj).describe(obj)
        except SourceProblem as problem:
            await self._report(obj, Outcome(problem.reason, problem.problems))
            return
        if network.endpoint is not None and network.endpoint.problem:
            text = f"the network's endpoint can never be changed, and {network.endpoint.problem}"
            await self._report(obj, Outcome(INVALID, [text]))
            return
        obj, conflicts = await self._apply_spec(obj, network)
        problems = [*conflicts, *network.problems, *_endpoint_problems(obj)]
        reason = CONFLICT if conflicts else INCOMPLETE if problems else Outcome().reason
        outcome = Outcome(reason, problems, network.failure_domains, network.status or None)
        await self._report(obj, outcome._replace(notes=self._left_behind(obj)))

    def _source(self, obj: JsonObject) -> Source:
        kind = annotations_of(obj).get(SOURCE, "").partition("/")[0].lower()
        return self._sources.get(kind) or self._sources[_PLAIN]

    async def _apply_spec(
        self, obj: JsonObject, network: Network
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """Write fields that are empty or ours; return the object afterwards, and the conflicts."""
        live, owned = map_at(obj, "spec"), owned_fields(obj, "spec")
        decision = decide_fields(network.desired_spec(), live, owned)
        if decision.removed:
            obj = await self._client.patch(
                self._managed.gvk,
                Key.of(obj),
                {
                    "metadata": {"resourceVersion": resource_version_of(obj)},
                    "spec": decision.removed,
                },
            )
            self._objects.observe(obj)
        if decision.differs:
            # The decision holds for this state only: what a user writes meanwhile must not be lost.
            # Force is for empty fields that somebody created, such as a host "".
            names = ("name", "namespace", "uid", "resourceVersion")
            metadata = {name: metadata_of(obj)[name] for name in names}
            kind = {"apiVersion": self._managed.gvk.api_version, "kind": self._managed.gvk.kind}
            obj = await self._client.apply(
                {**kind, "metadata": metadata, "spec": decision.fields}, manager=MANAGER, force=True
            )
            self._objects.observe(obj)
        return obj, decision.conflicts

    def _left_behind(self, obj: JsonObject) -> Sequence[str]:
        """Return a sentence for each finalizer that a former provider left behind.

        It blocks the deletion of the object, and nothing else.
        """
        return [
            f"finalizer {name} was left behind by the provider and will block deletion: annotate "
            f'{RELEASE_FINALIZERS}="true" to have it removed then'
            for name in finalizers_of(obj)
            if name in self._managed.finalizers
            and annotations_of(obj).get(RELEASE_FINALIZERS) != "true"
        ]

    async def _release(self, obj: JsonObject) -> None:
        """Removes the finalizers that a provider left, if we were told to."""
        names = finalizers_of(obj)
        left = [name for name in names if name not in self._managed.finalizers]
        if annotations_of(obj).get(RELEASE_FINALIZERS) != "true" or left == names:
            return
        metadata = {"resourceVersion": resource_version_of(obj), "finalizers": left}
        try:
            await self._client.patch(self._managed.gvk, Key.of(obj), {"metadata": metadata})
        except NotFound:
            return
        log.info("finalizers released", object=f"{self._managed.gvk.kind} {Key.of(obj)}")

    async def _report(self, obj: JsonObject, outcome: Outcome) -> None:
        patch = status_patch(obj, self._managed.contract, outcome, self._clock.now())
        await self._write_status(obj, patch)

    async def _write_status(self, obj: JsonObject, patch: JsonObject) -> None:
        if not patch:
            return
        written = await self._client.patch(
            self._managed.gvk,
            Key.of(obj),
            {"metadata": {"resourceVersion": resource_version_of(obj)}, "status": patch},
            subresource="status",
        )
        self._objects.observe(written)
        log.info("status written", object=f"{self._managed.gvk.kind} {name_of(obj)}")


def _endpoint_problems(obj: JsonObject) -> Iterator[str]:
    endpoint = endpoint_of(obj)
    if not endpoint.is_valid:
        yield (
            "there is no control plane endpoint: neither the network nor "
            "spec.controlPlaneEndpoint has a host and a port"
        )
    elif endpoint.problem:
        yield f"spec.controlPlaneEndpoint: {endpoint.problem}"


def _own(obj: JsonObject) -> JsonObject:
    return obj
