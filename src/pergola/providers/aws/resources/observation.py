"""Observation of resources: one query for each kind (spec 30 §13)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import filters_by
from pergola.flow import State
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.kinds import Kind
from pergola.providers.aws.snapshot import Snapshot


@dataclass(slots=True, kw_only=True)
class Observation:
    """The inputs and results of queries.

    Attributes:
        vpc: the id of the cluster's VPC; empty if unknown.
    """

    aws: AwsClient
    desired: Desired
    state: State
    vpc: str
    snapshot: Snapshot = field(default_factory=Snapshot)


def _always(seen: Observation) -> bool:
    del seen
    return True


def _in_vpc(seen: Observation) -> Mapping[str, str]:
    return {"vpc-id": seen.vpc}


def _any(seen: Observation, thing: JsonObject) -> bool:
    del seen, thing
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One list request of EC2, whose answer is added to the snapshot.

    Attributes:
        kind: of the resources.
        needed: whether the request is necessary.
        filters: selects resources, by name of the filter; all of the account if empty.
        keep: selects those to keep.
    """

    kind: Kind
    needed: Callable[[Observation], bool] = _always
    filters: Callable[[Observation], Mapping[str, str]] = _in_vpc
    keep: Callable[[Observation, JsonObject], bool] = _any

    async def run(self, seen: Observation) -> None:
        """Describe the resources, and put those that are kept into the snapshot.

        Raises:
            CloudError: AWS refused.
        """
        await describe(seen, self.kind, filters_by(self.filters(seen)), self.keep)


async def describe(
    seen: Observation,
    kind: Kind,
    filters: list[JsonObject],
    keep: Callable[[Observation, JsonObject], bool] = _any,
) -> None:
    """Describe resources of a kind, and put those that are kept into the snapshot.

    Raises:
        CloudError: AWS refused.
    """
    by = {kind.filters: filters} if filters else {}
    things = kind.in_snapshot(seen.snapshot)
    for thing in await seen.aws.pages("ec2", kind.describe, kind.items, **by):
        if keep(seen, thing):
            things[str(thing[kind.id])] = thing
