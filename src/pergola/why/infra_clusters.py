"""Why a Cluster API InfraCluster is as it is: its manager, its Cluster, and what is missing."""

from collections.abc import Iterator

from pergola.api.cluster_api import MANAGED_BY, SOURCE
from pergola.api.objects import (
    JsonObject,
    annotations_of,
    owner_references_of,
    uid_of,
)
from pergola.externally_managed.contract import ContractError
from pergola.externally_managed.inspection import Finding, Seen, errors, findings, is_ready, observe
from pergola.externally_managed.kinds import managed_by_crd, read_crd
from pergola.externally_managed.predicate import manager_of
from pergola.kube.errors import ApiError, Forbidden
from pergola.why.answer import Asked, Evidence, Kind, Part, Statement, Topic
from pergola.why.reading import Reader


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return who manages an InfraCluster, and all violations of its contract."""
    try:
        crd = await read_crd(reader.client, asked.gvk.group_kind)
        managed = managed_by_crd(crd, asked.gvk.group_kind)
        seen = await observe(reader.client, managed, crd, asked.key)
    except Forbidden as error:
        reader.note(f"its contract cannot be checked: {error}")
        return Part(statements=(*_manager(asked.obj),))
    except (ApiError, ContractError):
        return Part()  # a kind of the group that is not an InfraCluster, or a manifest
    found = findings(seen)
    return Part(
        sentence="is provisioned" if is_ready(seen) else "is not provisioned yet",
        statements=(*_desired(seen), *_manager(asked.obj), *_findings(found)),
        next_steps=(_next(asked),) if errors(found) else (),
    )


def _desired(seen: Seen) -> Iterator[Statement]:
    owners = [owner.get("uid") for owner in owner_references_of(seen.obj)]
    if seen.cluster is not None and uid_of(seen.cluster) not in owners:
        yield Statement(topic=Topic.WANTED, subject=f"Cluster {seen.cluster_key}")


def _manager(obj: JsonObject) -> Iterator[Statement]:
    manager = manager_of(obj)
    if manager is None:
        yield Statement(topic=Topic.DECIDED, text="its provider manages it")
        return
    named = f'manager "{manager}"' if manager else "another system"
    source = annotations_of(obj).get(SOURCE, "")
    yield Statement(
        topic=Topic.DECIDED,
        text=f"{named} manages it, and its provider ignores it",
        because=f"annotation {MANAGED_BY} is set",
        evidence=(Evidence(Kind.SOURCE, f"{source} (annotation {SOURCE})"),) if source else (),
    )


def _findings(found: list[Finding]) -> Iterator[Statement]:
    for finding in found:
        is_error = finding.severity == "error"
        yield Statement(
            topic=Topic.PROBLEM if is_error else Topic.DECIDED,
            subject="" if is_error else "warning",
            text=finding.text,
        )


def _next(asked: Asked) -> str:
    name = f"{asked.gvk.kind.lower()}/{asked.key.name}"
    return f"also check its network: pergola infra check {name} -n {asked.key.namespace}"
