"""The external manager's reconciliation of one InfraCluster: the numbered steps of spec 50 §5."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from pergola.api.cluster_api import RELEASE_FINALIZERS, SOURCE
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
)
from pergola.api.texts import abridged
from pergola.externally_managed.contract import Endpoint, effective_endpoint, endpoint_of
from pergola.externally_managed.description import Network
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.mapping import owner_cluster
from pergola.externally_managed.ownership import ENDPOINT, owned_fields
from pergola.externally_managed.predicate import is_paused, manager_of
from pergola.externally_managed.sources import INVALID, Source, SourceProblem
from pergola.externally_managed.spec_writer import SpecRefused, SpecWriter
from pergola.externally_managed.status import (
    CONFLICT,
    INCOMPLETE,
    REFUSED,
    WAITING_FOR_CLUSTER,
    Outcome,
)
from pergola.externally_managed.status_writer import StatusWriter
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.index import Index
from pergola.runtime.controlling import controller as runtime
from pergola.runtime.controlling.controller import DONE, Again, ReconcileError

_SHOWN: Final = 3
PLAIN: Final = "plain"
"""The source for networks described in ConfigMaps and Secrets."""


class ExternalManager:
    """The reconciler of one kind.

    Args:
        name: the value of the annotation on its InfraClusters.
    """

    def __init__(
        self,
        name: str,
        managed: Managed,
        sources: Mapping[str, Source],
        caches: tuple[Cache[JsonObject], Cache[JsonObject]],
        writers: tuple[SpecWriter, StatusWriter],
        *,
        resync_seconds: float,
    ) -> None:
        self._name = name
        self._managed = managed
        self._sources = sources
        self._objects, self._clusters = caches
        self._spec, self._status = writers
        self._by_endpoint = Index(self._objects, _endpoints_of)
        self._resync_seconds = resync_seconds

    async def reconcile(self, key: Key) -> runtime.Outcome:
        """Update one InfraCluster from its network."""
        obj = self._objects.get(key)
        if obj is None or manager_of(obj) != self._name:
            return DONE
        if deletion_timestamp_of(obj) is not None:
            if annotations_of(obj).get(RELEASE_FINALIZERS) == "true":
                await self._spec.release(obj)
            return DONE
        owner = owner_cluster(obj)
        cluster = self._clusters.get(owner) if owner else None
        if is_paused(obj, cluster):
            await self._status.patch_paused(obj)
            return DONE
        if cluster is None:
            text = f"Cluster {owner} does not exist yet" if owner else "no Cluster refers to it yet"
            await self._status.patch_outcome(obj, Outcome(WAITING_FOR_CLUSTER, [text]))
            return DONE
        await self._fill(obj, cluster)
        return Again(self._resync_seconds)

    async def _fill(self, obj: JsonObject, cluster: JsonObject) -> None:
        try:
            network = _settled_endpoint(await self._source(obj).describe(obj), obj, cluster)
            obj, conflicts = await self._spec.apply(obj, network.desired_spec())
        except SourceProblem as problem:
            await self._status.patch_outcome(obj, Outcome(problem.reason, problem.problems))
            return
        except SpecRefused as error:
            text = f"the API server refuses the network: {error}"
            await self._status.patch_outcome(obj, Outcome(REFUSED, [text]))
            raise ReconcileError(text) from None
        problems = [*conflicts, *network.problems, *_endpoint_problems(obj, cluster)]
        reason = CONFLICT if conflicts else INCOMPLETE if problems else Outcome().reason
        await self._status.patch_outcome(
            obj,
            Outcome(
                reason,
                problems,
                network.failure_domains,
                network.status or None,
                notes=[*self._left_behind(obj), *self._sharing(obj)],
            ),
        )

    def _source(self, obj: JsonObject) -> Source:
        kind = annotations_of(obj).get(SOURCE, "").partition("/")[0].lower()
        return self._sources.get(kind) or self._sources[PLAIN]

    def _left_behind(self, obj: JsonObject) -> Iterator[str]:
        """Describe the finalizers of a previous provider, which would only block deletion."""
        if annotations_of(obj).get(RELEASE_FINALIZERS) == "true":
            return
        for name in finalizers_of(obj):
            if name in self._managed.finalizers:
                yield (
                    f"finalizer {name} was left behind by the provider and will block deletion: "
                    f'annotate {RELEASE_FINALIZERS}="true" to have it removed then'
                )

    def _sharing(self, obj: JsonObject) -> Iterator[str]:
        """Describe other InfraClusters with the endpoint of this one, such as that of a copy."""
        endpoint = endpoint_of(obj)
        keys = self._by_endpoint.keys(endpoint) if endpoint.is_valid else ()
        others = sorted(str(key) for key in keys if key != Key.of(obj))
        if others:
            yield (
                f"{endpoint} is the endpoint of {abridged(others, _SHOWN)}, too: machines of one "
                "Cluster would join the other"
            )


def _endpoints_of(_: Key, obj: JsonObject) -> list[Endpoint]:
    endpoint = endpoint_of(obj)
    is_there = endpoint.is_valid and deletion_timestamp_of(obj) is None
    return [endpoint] if is_there else []


def _settled_endpoint(network: Network, obj: JsonObject, cluster: JsonObject) -> Network:
    """Return the network with the endpoint that the Cluster has adopted, which cannot change.

    Raises:
        SourceProblem: clients could not connect to the network's endpoint.
    """
    found, given = network.endpoint, endpoint_of(obj)
    if found is not None and found.problem:
        raise SourceProblem(
            INVALID, f"the endpoint of the network could never be corrected, and {found.problem}"
        )
    is_ours = "host" in owned_fields(obj, "spec").ours.get(ENDPOINT, {})
    adopted = endpoint_of(cluster)
    kept = given if given.is_valid else adopted
    may_change = not adopted.is_valid or (given.is_valid and not is_ours)
    if found in (None, kept) or may_change:
        return network
    problem = (
        f"the network is now at {found}, but the Cluster keeps {kept}; make the old name point "
        "to the new one, or create another cluster"
    )
    return replace(network, endpoint=kept, problems=(*network.problems, problem))


def _endpoint_problems(obj: JsonObject, cluster: JsonObject) -> Iterator[str]:
    endpoint = effective_endpoint(obj, cluster)
    if endpoint is None:
        yield (
            "no control plane endpoint is known: neither the network nor "
            "spec.controlPlaneEndpoint, here or on the Cluster, has a host and a port"
        )
    elif endpoint.problem:
        yield f"spec.controlPlaneEndpoint: {endpoint.problem}"
