"""Facts about one InfraCluster: its manager, and what prevents it from being ready.

`look` reads; everything else is pure. Nothing here writes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pergola.api.cluster_api import CLUSTER, MANAGED_BY, RELEASE_FINALIZERS
from pergola.api.conditions import get_condition
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    labels_of,
    map_at,
    maps_at,
)
from pergola.externally_managed.conditions import READY, conditions_of
from pergola.externally_managed.contract import (
    ContractError,
    effective_endpoint,
    endpoint_of,
    failure_domains_of,
    is_provisioned,
)
from pergola.externally_managed.description import Network
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.mapping import infrastructure_reference, owner_cluster
from pergola.externally_managed.ownership import decide_fields, owned_fields
from pergola.externally_managed.predicate import is_paused, manager_of
from pergola.externally_managed.sources import Source, SourceProblem
from pergola.kube.client import Client
from pergola.kube.errors import NotFound

Severity = Literal["error", "warning"]


class Finding(NamedTuple):
    """A finding about an InfraCluster for users.

    Attributes:
        severity: an error prevents the Cluster from becoming ready, or from being deleted.
    """

    severity: Severity
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """One InfraCluster and its dependencies.

    Attributes:
        cluster_key: the Cluster that it belongs to, whether or not that exists.
        network: the network that its source describes; None without a source.
        source_problems: why the source is unusable.
    """

    managed: Managed
    obj: JsonObject
    crd: JsonObject
    cluster_key: Key | None = None
    cluster: JsonObject | None = None
    network: Network | None = None
    source_problems: Sequence[str] = ()


async def observe(
    client: Client, managed: Managed, crd: JsonObject, key: Key, source: Source | None = None
) -> Seen:
    """Read an InfraCluster, its Cluster and, with a source, its network.

    Raises:
        NotFound: the InfraCluster does not exist.
    """
    obj = await client.get(managed.gvk, key)
    owner = owner_cluster(obj)
    cluster = None
    if owner is not None:
        try:
            cluster = await client.get(CLUSTER, owner)
        except NotFound:
            cluster = None
    network: Network | None = None
    problems: Sequence[str] = ()
    if source is not None:
        try:
            network = await source.describe(obj)
        except SourceProblem as problem:
            problems = problem.problems
    return Seen(managed, obj, crd, owner, cluster, network, problems)


def findings(seen: Seen) -> list[Finding]:
    """Return all contract violations and other noteworthy facts (spec 50 §4)."""
    return [
        *_definition(seen),
        *_management(seen),
        *_links(seen),
        *_content(seen),
        *_network(seen),
    ]


def errors(found: Sequence[Finding]) -> list[str]:
    """Return the sentences of the errors."""
    return [finding.text for finding in found if finding.severity == "error"]


def is_ready(seen: Seen) -> bool:
    """Return whether core counts the infrastructure as provisioned.

    A malformed status counts as not provisioned.
    """
    try:
        return is_provisioned(seen.obj, seen.managed.contract.version)
    except ContractError:
        return False


def _definition(seen: Seen) -> Iterator[Finding]:
    if map_at(seen.crd, "spec").get("scope") != "Namespaced":
        yield Finding("error", "its kind is not namespaced, which the contract requires")
    for version in maps_at(seen.crd, "spec", "versions"):
        is_read = version.get("name") == seen.managed.gvk.version
        if is_read and "status" not in map_at(version, "subresources"):
            yield Finding("warning", "its kind has no status subresource")
        if is_read and not version.get("served"):
            yield Finding(
                "error",
                f"its kind does not serve version {seen.managed.gvk.version}, which the contract "
                "label of its CRD names",
            )


def _management(seen: Seen) -> Iterator[Finding]:
    obj = seen.obj
    if MANAGED_BY in labels_of(obj) and manager_of(obj) is None:
        yield Finding(
            "warning",
            f"{MANAGED_BY} is set as a label, which has no effect; set it as an annotation",
        )
    left = [name for name in finalizers_of(obj) if name in seen.managed.finalizers]
    if manager_of(obj) is not None and left:
        severity: Severity = "error" if deletion_timestamp_of(obj) else "warning"
        if annotations_of(obj).get(RELEASE_FINALIZERS) != "true":
            yield Finding(
                severity,
                f"finalizer {', '.join(left)} was left behind by the provider and blocks deletion: "
                f'annotate {RELEASE_FINALIZERS}="true" to have it removed then',
            )


def _links(seen: Seen) -> Iterator[Finding]:
    if seen.cluster_key is None:
        yield Finding("error", "no Cluster refers to it: it has neither owner nor label")
        return
    if seen.cluster is None:
        yield Finding("error", f"Cluster {seen.cluster_key}, to which it belongs, does not exist")
        return
    reference = infrastructure_reference(seen.cluster)
    if reference != (seen.managed.gvk.group_kind, Key.of(seen.obj)):
        found = f"{reference[0]} {reference[1].name}" if reference else "nothing"
        yield Finding(
            "error", f"spec.infrastructureRef of Cluster {seen.cluster_key} names {found}"
        )
    if is_paused(seen.obj, seen.cluster):
        yield Finding("warning", "it is paused")
    mine, theirs = endpoint_of(seen.obj), endpoint_of(seen.cluster)
    if mine.is_valid and theirs.is_valid and mine != theirs:
        yield Finding(
            "warning",
            f"its endpoint is {mine}, but the Cluster keeps {theirs}, which it adopted first",
        )


def _content(seen: Seen) -> Iterator[Finding]:
    version = seen.managed.contract.version
    given = effective_endpoint(seen.obj, seen.cluster)
    if given is None:
        yield Finding("error", "spec.controlPlaneEndpoint has no host and port")
    elif given.problem:
        yield Finding("error", f"spec.controlPlaneEndpoint: {given.problem}")
    for read in (is_provisioned, failure_domains_of):
        try:
            read(seen.obj, version)
        except ContractError as error:
            yield Finding("error", f"its status breaks the contract: {error}")
    ready = get_condition(conditions_of(seen.obj), READY) or {}
    if ready.get("status") not in (None, "True"):
        yield Finding("error", f"{ready.get('reason')}: {ready.get('message')}")
    elif not is_ready(seen):
        manager = manager_of(seen.obj)
        who = "its provider" if manager is None else manager or "its manager"
        yield Finding("error", f"{who} has not reported that it is ready")


def _network(seen: Seen) -> Iterator[Finding]:
    yield from (Finding("error", problem) for problem in seen.source_problems)
    if seen.network is None:
        return
    yield from (Finding("error", problem) for problem in seen.network.problems)
    decision = decide_fields(
        seen.network.desired_spec(), map_at(seen.obj, "spec"), owned_fields(seen.obj, "spec")
    )
    yield from (Finding("error", conflict) for conflict in decision.conflicts)
